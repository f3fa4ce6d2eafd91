#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/compute/torch.h"

namespace petlab::trainer {

// Products of float32 matrices on a CPU. LibTorch brings two libraries that compute them, and which
// is faster is the processor's and the direction's: on an Intel Xeon oneDNN takes twice MKL's time
// for a gradient by a transposed weight, on an AMD EPYC MKL twice oneDNN's for everything.

enum class ProductLibrary {
  blas,   ///< LibTorch's own: MKL in its x86-64 wheels, OpenBLAS elsewhere
  onednn  ///< reads any strides, and uses vector units that MKL leaves alone on some processors
};

/// Who computes which of a linear layer's products. The last bits of a trial depend on it.
struct ProductLibraries {
  ProductLibrary forward = ProductLibrary::onednn;          // x · weightᵀ
  ProductLibrary input_gradient = ProductLibrary::onednn;   // gradient · weight
  ProductLibrary weight_gradient = ProductLibrary::onednn;  // gradientᵀ · x
  bool operator==(const ProductLibraries&) const = default;
};

/// "onednn" or "blas" where all are by one library, else the three by name in the order above:
/// "onednn,blas,blas".
std::string to_string(const ProductLibraries& libraries);
/// Such a text; absent where it is none.
std::optional<ProductLibraries> parse_product_libraries(std::string_view text);

/// Those of this process, oneDNN at first. A LibTorch without oneDNN has LibTorch's own alone.
const ProductLibraries& product_libraries();
/// To be called before anything is computed: not for several threads.
void use_product_libraries(const ProductLibraries& libraries);

/// Whether the processor has instructions for products of bfloat16: AVX512-BF16, which all with AMX
/// have, or Arm's. Without them such products are many times slower.
bool multiplies_bf16();

/// Times both in each direction on one thread, in turns, on products as large as a small batch has,
/// and takes LibTorch's own where it is faster by a tenth or more. Some hundred milliseconds.
ProductLibraries measure_product_libraries();

// A float32 matrix on a CPU times a bfloat16 weight: the matrix is rounded, the sums are float32,
// and the result comes back as float32, rounded to bfloat16 on the way but for the bias. By oneDNN,
// where there is one.

/// x (rows, in) · weightᵀ (out, in) + bias (out), which may be undefined.
Tensor forward_product(const Tensor& x, const Tensor& weight, const Tensor& bias);
/// gradient (rows, out) · weight (out, in).
Tensor input_gradient_product(const Tensor& gradient, const Tensor& weight);

// The same in bfloat16 alone, of which those above are made: what goes in was rounded before, and
// what comes out is not widened.

/// x (rows, in) · weightᵀ (out, in).
Tensor short_forward_product(const Tensor& x, const Tensor& weight);
/// gradient (rows, out) · weight (out, in).
Tensor short_gradient_product(const Tensor& gradient, const Tensor& weight);
/// What they make (rows, out) in float32, plus `bias` (out), which may be undefined.
Tensor widened(const Tensor& product, const Tensor& bias);

// Instead of a bfloat16 weight that never changes, the products above and below may be given the
// copy of it that was made for their direction.

/// The bfloat16 weight (out, in) in the order in which oneDNN reads it, for forward_product,
/// short_forward_product and forward_products alone. The weight itself where oneDNN does not
/// multiply it.
Tensor packed_for_forward(const Tensor& weight);
/// For input_gradient_product, short_gradient_product and summed_input_gradient alone.
Tensor packed_for_gradient(const Tensor& weight);

/// forward_product of x with each of several bfloat16 weights, for which x is rounded once.
/// `biases` has one for each, which may be undefined.
std::vector<Tensor> forward_products(const Tensor& x, std::span<const Tensor> weights,
                                     std::span<const Tensor> biases);
/// The sum of input_gradient_product over gradients and their bfloat16 weights, without the terms
/// in float32.
Tensor summed_input_gradient(std::span<const Tensor> gradients, std::span<const Tensor> weights);
/// gradientᵀ (out, rows) · x (rows, in), in the type of both.
Tensor weight_gradient_product(const Tensor& gradient, const Tensor& x);

}  // namespace petlab::trainer
