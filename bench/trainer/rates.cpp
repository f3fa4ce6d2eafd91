#include "bench/trainer/rates.h"

#include <algorithm>
#include <array>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/trainer/meters.h"
#include "trainer/compute/product_weight.h"
#include "trainer/compute/products.h"

namespace petlab::bench {
namespace {

using namespace petlab::trainer;

constexpr int kLayers = 12;
constexpr int kKinds = 3;
struct Matrix {
  std::int64_t in, out;
  int in_a_layer;
};
constexpr std::array<Matrix, kKinds> kMatrices{{{768, 768, 4}, {768, 3072, 1}, {3072, 768, 1}}};

/// The factors and the times of one kind of matrix.
struct Timed {
  Tensor x, gradient;
  std::vector<double> forward, backward;
};

template <typename Product>
double seconds_of(const Product& product) {
  const Stopwatch watch;
  product();
  return watch.seconds();
}

double median(std::vector<double> seconds) {
  const auto middle = seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2);
  std::nth_element(seconds.begin(), middle, seconds.end());
  return *middle;
}

}  // namespace

void time_products(const ProductRates& options) {
  at::set_num_threads(options.threads);
  const at::NoGradGuard no_grad;
  const bool bf16 = options.bf16;
  const at::ScalarType type = bf16 ? at::kBFloat16 : at::kFloat;
  // Each layer has its own matrices, so that they come from memory, as in a step, and not from a
  // cache.
  struct Weight {
    int kind;
    ProductWeight weight;
  };
  std::vector<Weight> weights;
  std::array<Timed, kKinds> timed;
  for (int kind = 0; kind < kKinds; ++kind) {
    const Matrix& matrix = kMatrices[kind];
    timed[kind].x = at::randn({options.rows, matrix.in}).to(type);
    timed[kind].gradient = at::randn({options.rows, matrix.out}).to(type);
  }
  for (int layer = 0; layer < kLayers; ++layer) {
    for (int kind = 0; kind < kKinds; ++kind) {
      const Matrix& matrix = kMatrices[kind];
      for (int i = 0; i < matrix.in_a_layer; ++i) {
        weights.push_back({kind, ProductWeight(at::randn({matrix.out, matrix.in}), bf16)});
      }
    }
  }
  for (int turn = -1; turn < options.turns;
       ++turn) {  // the first turn compiles kernels and creates copies
    for (const Weight& of : weights) {
      const Tensor weight = of.weight.forward();
      Timed& to = timed[of.kind];
      const double seconds = seconds_of(
          [&] { bf16 ? short_forward_product(to.x, weight) : forward_product(to.x, weight, {}); });
      if (turn >= 0) to.forward.push_back(seconds);
    }
    for (auto of = weights.rbegin(); of != weights.rend(); ++of) {
      const Tensor weight = of->weight.gradient();
      Timed& to = timed[of->kind];
      const double seconds = seconds_of([&] {
        bf16 ? short_gradient_product(to.gradient, weight)
             : input_gradient_product(to.gradient, weight);
      });
      if (turn >= 0) to.backward.push_back(seconds);
    }
  }
  nlohmann::ordered_json rates;
  double all_seconds = 0, all_work = 0;
  for (int kind = 0; kind < kKinds; ++kind) {
    const Matrix& matrix = kMatrices[kind];
    const double forward = median(timed[kind].forward);
    const double backward = median(timed[kind].backward);
    const double work = 2e-9 * static_cast<double>(options.rows * matrix.in * matrix.out);
    rates[std::to_string(matrix.in) + " x " + std::to_string(matrix.out)] = {
        {"forward", work / forward}, {"gradient", work / backward}};
    all_seconds += matrix.in_a_layer * (forward + backward);
    all_work += matrix.in_a_layer * 2 * work;
  }
  std::cout << nlohmann::ordered_json{{"rows", options.rows},
                                      {"threads", options.threads},
                                      {"products", to_string(product_libraries())},
                                      {"bf16", bf16},
                                      {"gflops", rates},
                                      {"gflops_of_a_layer", all_work / all_seconds}}
            << std::endl;
}

}  // namespace petlab::bench
