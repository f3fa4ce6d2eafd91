#include "trainer/compute/products.h"

#include <ATen/core/dispatch/Dispatcher.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <limits>
#include <utility>

#include "trainer/compute/row_kernels.h"
#include "trainer/compute/tensors.h"

#if defined(__aarch64__)
#include <sys/auxv.h>
#endif

namespace petlab::trainer {
namespace {

/// oneDNN's matrix product, which LibTorch registers for its compiler. Absent if LibTorch was built
/// without oneDNN.
const std::optional<c10::OperatorHandle>& onednn_linear() {
  static const std::optional<c10::OperatorHandle> found =
      at::hasMKLDNN() ? c10::Dispatcher::singleton().findSchema({"mkldnn::_linear_pointwise", ""})
                      : std::nullopt;
  return found;
}

/// Copies matrices to the order in which call_onednn reads them.
const std::optional<c10::OperatorHandle>& onednn_packing() {
  static const std::optional<c10::OperatorHandle> found =
      onednn_linear()
          ? c10::Dispatcher::singleton().findSchema({"mkldnn::_reorder_linear_weight", ""})
          : std::nullopt;
  return found;
}

Tensor call_onednn(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  torch::jit::Stack stack;
  stack.emplace_back(x);
  stack.emplace_back(weight);
  stack.emplace_back(bias.defined() ? c10::IValue(bias) : c10::IValue());
  stack.emplace_back("none");
  stack.emplace_back(c10::List<std::optional<at::Scalar>>());
  stack.emplace_back("");
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  onednn_linear()->callBoxed(&stack);
  return stack.front().toTensor();
}

bool is_by_onednn(ProductLibrary library, const Tensor& x) {
  return library == ProductLibrary::onednn && x.device().is_cpu() &&
         x.scalar_type() == at::kFloat && onednn_linear();
}

bool is_short(const Tensor& x) { return x.device().is_cpu() && x.scalar_type() == at::kBFloat16; }
bool is_widened(const Tensor& x, const Tensor& weight) {
  return is_short(weight) && x.scalar_type() == at::kFloat;
}

/// x (rows, in) · weightᵀ (out, in), both in bfloat16.
Tensor short_product(const Tensor& x, const Tensor& weight) {
  if (onednn_linear() && multiplies_bf16()) return call_onednn(x, weight, {});
  return at::mm(x, weight.t());
}

/// Packs a bfloat16 matrix (out, in). Undefined if oneDNN does not multiply it.
Tensor packed_matrix(const Tensor& matrix) {
  if (!is_short(matrix) || !multiplies_bf16() || !onednn_packing()) return {};
  const at::NoGradGuard no_grad;
  torch::jit::Stack stack;
  stack.emplace_back(matrix);
  stack.emplace_back();  // any number of rows
  onednn_packing()->callBoxed(&stack);
  return stack.front().toTensor();
}

bool is_packed(const Tensor& weight) { return weight.is_mkldnn(); }
/// The right-hand side for a gradient, in the form that short_product takes.
Tensor by_columns(const Tensor& weight) { return is_packed(weight) ? weight : weight.t(); }

ProductLibraries& libraries_of_process() {
  static ProductLibraries libraries;
  return libraries;
}

constexpr std::array<std::pair<std::string_view, ProductLibrary>, 2> kLibraryNames{
    {{"blas", ProductLibrary::blas}, {"onednn", ProductLibrary::onednn}}};

std::string_view name_of(ProductLibrary library) {
  return std::find_if(kLibraryNames.begin(), kLibraryNames.end(),
                      [&](const auto& row) { return row.second == library; })
      ->first;
}

std::optional<ProductLibrary> library_named(std::string_view name) {
  for (const auto& [known, library] : kLibraryNames) {
    if (known == name) return library;
  }
  return std::nullopt;
}

// The product to time: the inner projection of a feed-forward layer of width 768, for a few
// sentences.
constexpr std::int64_t kTimedRows = 256;
constexpr std::int64_t kTimedIn = 768;
constexpr std::int64_t kTimedOut = 3072;
constexpr int kTimedTurns = 5;
/// LibTorch's own library must take at most this share of oneDNN's time. Smaller gains do not
/// matter, and another measurement could contradict them.
constexpr double kClearlyFaster = 0.9;

/// Processor time of this thread, which does not depend on how busy the machine is.
double thread_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

template <typename Product>
double seconds_of(const Product& product) {
  const double began = thread_seconds();
  product();
  return thread_seconds() - began;
}

template <typename Product>
ProductLibrary faster_library(ProductLibrary ProductLibraries::*direction, const Product& product) {
  // The best of several turns counts, because disturbances only make a product slower.
  std::array<double, kLibraryNames.size()> best{};
  best.fill(std::numeric_limits<double>::infinity());
  for (int turn = 0; turn <= kTimedTurns; ++turn) {
    for (std::size_t i = 0; i < kLibraryNames.size(); ++i) {
      libraries_of_process().*direction = kLibraryNames[i].second;
      const double seconds = seconds_of(product);
      if (turn > 0) best[i] = std::min(best[i], seconds);  // the first turn compiles kernels
    }
  }
  return best[0] < kClearlyFaster * best[1] ? kLibraryNames[0].second : kLibraryNames[1].second;
}

}  // namespace

std::string to_string(const ProductLibraries& libraries) {
  const std::string forward(name_of(libraries.forward));
  if (libraries == ProductLibraries{libraries.forward, libraries.forward, libraries.forward}) {
    return forward;
  }
  return forward + "," + std::string(name_of(libraries.input_gradient)) + "," +
         std::string(name_of(libraries.weight_gradient));
}

std::optional<ProductLibraries> parse_product_libraries(std::string_view text) {
  if (const auto all = library_named(text)) return ProductLibraries{*all, *all, *all};
  const std::size_t first = text.find(',');
  const std::size_t second = text.find(',', first == text.npos ? first : first + 1);
  if (second == text.npos) return std::nullopt;
  const auto forward = library_named(text.substr(0, first));
  const auto input = library_named(text.substr(first + 1, second - first - 1));
  const auto weight = library_named(text.substr(second + 1));
  if (!forward || !input || !weight) return std::nullopt;
  return ProductLibraries{*forward, *input, *weight};
}

const ProductLibraries& product_libraries() { return libraries_of_process(); }

void use_product_libraries(const ProductLibraries& libraries) {
  libraries_of_process() = libraries;
}

ProductLibraries measure_product_libraries() {
  constexpr ProductLibrary blas = ProductLibrary::blas;
  if (!onednn_linear()) return {blas, blas, blas};
  const at::NoGradGuard no_grad;
  const ProductLibraries before = product_libraries();
  const int threads = at::get_num_threads();
  at::set_num_threads(1);
  const Tensor x = at::full({kTimedRows, kTimedIn}, 0.5, at::kFloat);
  const Tensor gradient = at::full({kTimedRows, kTimedOut}, 0.5, at::kFloat);
  const Tensor weight = at::full({kTimedOut, kTimedIn}, 0.5, at::kFloat);
  ProductLibraries chosen;
  chosen.forward = faster_library(&ProductLibraries::forward,
                                  [&] { return forward_product(x, weight, Tensor()); });
  chosen.input_gradient = faster_library(&ProductLibraries::input_gradient,
                                         [&] { return input_gradient_product(gradient, weight); });
  chosen.weight_gradient = faster_library(&ProductLibraries::weight_gradient,
                                          [&] { return weight_gradient_product(gradient, x); });
  use_product_libraries(before);
  at::set_num_threads(threads);
  return chosen;
}

bool multiplies_bf16() {
#if defined(__x86_64__)
  static const bool does = __builtin_cpu_supports("avx512bf16") != 0;
  return does;
#elif defined(__aarch64__) && defined(HWCAP2_BF16)
  static const bool does = (::getauxval(AT_HWCAP2) & HWCAP2_BF16) != 0;
  return does;
#else
  return false;
#endif
}

Tensor packed_for_forward(const Tensor& weight) {
  const Tensor packed = packed_matrix(weight);
  return packed.defined() ? packed : weight;
}

Tensor packed_for_gradient(const Tensor& weight) {
  const Tensor packed = packed_matrix(weight.t());
  return packed.defined() ? packed : weight;
}

Tensor short_forward_product(const Tensor& x, const Tensor& weight) {
  return short_product(x, weight).contiguous();
}

Tensor short_gradient_product(const Tensor& gradient, const Tensor& weight) {
  return short_product(gradient, by_columns(weight)).contiguous();
}

Tensor widened(const Tensor& product, const Tensor& bias) {
  Tensor output = at::empty(product.sizes(), product.options().dtype(at::kFloat));
  const std::int64_t width = product.size(1);
  const std::uint16_t* const from = short_numbers(product);
  auto* const to = output.mutable_data_ptr<float>();
  const float* const added = bias.defined() ? bias.const_data_ptr<float>() : nullptr;
  at::parallel_for(0, product.size(0), 64, [&](std::int64_t begin, std::int64_t end) {
    widen_rows(end - begin, width, from + begin * width, added, to + begin * width);
  });
  return output;
}

Tensor forward_product(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  if (is_widened(x, weight)) {
    return widened(short_forward_product(x.to(at::kBFloat16), weight), bias);
  }
  if (is_by_onednn(product_libraries().forward, x)) {
    return call_onednn(x.contiguous(), weight, bias);
  }
  return bias.defined() ? at::addmm(bias, x, weight.t()) : at::mm(x, weight.t());
}

Tensor input_gradient_product(const Tensor& gradient, const Tensor& weight) {
  if (is_widened(gradient, weight)) {
    return widened(short_gradient_product(gradient.to(at::kBFloat16), weight), {});
  }
  if (is_packed(weight)) return call_onednn(gradient.contiguous(), weight, {});
  if (is_by_onednn(product_libraries().input_gradient, gradient)) {
    return call_onednn(gradient, weight.t(), {});
  }
  return at::mm(gradient, weight);
}

std::vector<Tensor> forward_products(const Tensor& x, std::span<const Tensor> weights,
                                     std::span<const Tensor> biases) {
  const Tensor rounded = x.to(at::kBFloat16);
  std::vector<Tensor> products;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    products.push_back(widened(short_forward_product(rounded, weights[i]), biases[i]));
  }
  return products;
}

Tensor summed_input_gradient(std::span<const Tensor> gradients, std::span<const Tensor> weights) {
  std::vector<Tensor> products;
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    products.push_back(short_gradient_product(gradients[i].to(at::kBFloat16), weights[i]));
  }
  const Tensor& first = products.front();
  Tensor sum = at::empty(first.sizes(), first.options().dtype(at::kFloat));
  const std::int64_t width = first.size(1);
  float* const to = sum.mutable_data_ptr<float>();
  at::parallel_for(0, first.size(0), 64, [&](std::int64_t begin, std::int64_t end) {
    const std::int64_t at = begin * width;
    widen_rows(end - begin, width, short_numbers(first) + at, nullptr, to + at);
    for (std::size_t i = 1; i < products.size(); ++i) {
      add_widened((end - begin) * width, short_numbers(products[i]) + at, to + at);
    }
  });
  return sum;
}

Tensor weight_gradient_product(const Tensor& gradient, const Tensor& x) {
  if (is_short(gradient)) return short_product(gradient.t(), x.t()).contiguous();
  if (is_by_onednn(product_libraries().weight_gradient, gradient)) {
    return call_onednn(gradient.t(), x.t(), {});
  }
  return at::mm(gradient.t(), x);
}

}  // namespace petlab::trainer
