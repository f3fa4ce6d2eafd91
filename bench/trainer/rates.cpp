#include "bench/trainer/rates.h"

#include <algorithm>
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

struct Matrix {
  std::int64_t in, out;
  int in_a_layer;
};
constexpr Matrix kMatrices[] = {{768, 768, 4}, {768, 3072, 1}, {3072, 768, 1}};

template <typename Product>
double median_seconds(int turns, const Product& product) {
  std::vector<double> seconds;
  for (int turn = -2; turn < turns; ++turn) {
    const Stopwatch watch;
    product();
    if (turn >= 0) seconds.push_back(watch.seconds());
  }
  const auto middle = seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2);
  std::nth_element(seconds.begin(), middle, seconds.end());
  return *middle;
}

}  // namespace

void time_products(const ProductRates& options) {
  at::set_num_threads(options.threads);
  const at::NoGradGuard no_grad;
  const at::ScalarType type = options.bf16 ? at::kBFloat16 : at::kFloat;
  nlohmann::ordered_json rates;
  double all_seconds = 0, all_work = 0;
  for (const Matrix& matrix : kMatrices) {
    const ProductWeight weight(at::randn({matrix.out, matrix.in}), options.bf16);
    const Tensor x = at::randn({options.rows, matrix.in}).to(type);
    const Tensor gradient = at::randn({options.rows, matrix.out}).to(type);
    const Tensor by_forward = weight.forward(), by_gradient = weight.gradient();
    const double forward = median_seconds(options.turns, [&] {
      options.bf16 ? short_forward_product(x, by_forward) : forward_product(x, by_forward, {});
    });
    const double backward = median_seconds(options.turns, [&] {
      options.bf16 ? short_gradient_product(gradient, by_gradient)
                   : input_gradient_product(gradient, by_gradient);
    });
    const double work = 2e-9 * static_cast<double>(options.rows * matrix.in * matrix.out);
    rates[std::to_string(matrix.in) + " x " + std::to_string(matrix.out)] = {
        {"forward", work / forward}, {"gradient", work / backward}};
    all_seconds += matrix.in_a_layer * (forward + backward);
    all_work += matrix.in_a_layer * 2 * work;
  }
  std::cout << nlohmann::ordered_json{{"rows", options.rows},
                                      {"threads", options.threads},
                                      {"products", to_string(product_libraries())},
                                      {"bf16", options.bf16},
                                      {"gflops", rates},
                                      {"gflops_of_a_layer", all_work / all_seconds}}
            << std::endl;
}

}  // namespace petlab::bench
