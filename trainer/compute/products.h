#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/compute/torch.h"

namespace petlab::trainer {

// The library for products of float32 matrices on a CPU. LibTorch brings two, and the faster one
// depends on the processor and the direction: on an Intel Xeon, oneDNN takes twice MKL's time for a
// gradient by a transposed weight; on an AMD EPYC, MKL takes twice oneDNN's for everything.

enum class ProductLibrary {
  blas,   ///< LibTorch's own: MKL in its x86-64 wheels, OpenBLAS elsewhere
  onednn  ///< reads any strides, and on some processors uses vector units that MKL does not
};

/// The library of each of a linear layer's products. A trial's last bits depend on it.
struct ProductLibraries {
  ProductLibrary forward = ProductLibrary::onednn;          // x · weightᵀ
  ProductLibrary input_gradient = ProductLibrary::onednn;   // gradient · weight
  ProductLibrary weight_gradient = ProductLibrary::onednn;  // gradientᵀ · x
  bool operator==(const ProductLibraries&) const = default;
};

/// Returns "onednn" or "blas" if all three are equal, else their names in the order above:
/// "onednn,blas,blas".
std::string to_string(const ProductLibraries& libraries);
/// Parses such a text; absent if it is invalid.
std::optional<ProductLibraries> parse_product_libraries(std::string_view text);

/// The libraries of this process, initially oneDNN. A LibTorch without oneDNN always uses its own.
const ProductLibraries& product_libraries();
/// Call this before any computation. Not thread-safe.
void use_product_libraries(const ProductLibraries& libraries);

/// Whether the processor multiplies bfloat16 in hardware: AVX512-BF16, which all processors with
/// AMX have, or Arm's instructions. Without them, such products are many times slower.
bool multiplies_bf16();

/// Times both libraries in each direction on one thread, in turns, on products as large as those of
/// a small batch. Chooses LibTorch's own where it is faster by a tenth or more. Takes a few hundred
/// milliseconds.
ProductLibraries measure_product_libraries();

// Multiply a float32 matrix on a CPU by a bfloat16 weight. The matrix is rounded and sums are
// float32; the result is rounded to bfloat16 before the bias is added in float32. They use oneDNN
// if it is available.

/// x (rows, in) · weightᵀ (out, in) + bias (out), which may be undefined.
Tensor forward_product(const Tensor& x, const Tensor& weight, const Tensor& bias);
/// gradient (rows, out) · weight (out, in).
Tensor input_gradient_product(const Tensor& gradient, const Tensor& weight);

// The same entirely in bfloat16, as building blocks of those above: inputs are already rounded, and
// results are not widened.

/// x (rows, in) · weightᵀ (out, in).
Tensor short_forward_product(const Tensor& x, const Tensor& weight);
/// gradient (rows, out) · weight (out, in).
Tensor short_gradient_product(const Tensor& gradient, const Tensor& weight);
/// Converts such a product (rows, out) to float32 and adds `bias` (out), which may be undefined.
Tensor widened(const Tensor& product, const Tensor& bias);

// For a bfloat16 weight that never changes, the products above and below also accept the packed
// copy for their direction.

/// Packs the bfloat16 weight (out, in) in the order in which oneDNN reads it, only for
/// forward_product, short_forward_product and forward_products. Returns the weight itself if oneDNN
/// does not multiply it.
Tensor packed_for_forward(const Tensor& weight);
/// Only for input_gradient_product, short_gradient_product and summed_input_gradient.
Tensor packed_for_gradient(const Tensor& weight);

/// forward_product of x with each of several bfloat16 weights; x is rounded only once. `biases` has
/// one for each weight, which may be undefined.
std::vector<Tensor> forward_products(const Tensor& x, std::span<const Tensor> weights,
                                     std::span<const Tensor> biases);
/// The sum of input_gradient_product over gradients and their bfloat16 weights, without storing its
/// terms in float32.
Tensor summed_input_gradient(std::span<const Tensor> gradients, std::span<const Tensor> weights);
/// gradientᵀ (out, rows) · x (rows, in), in their common type.
Tensor weight_gradient_product(const Tensor& gradient, const Tensor& x);

}  // namespace petlab::trainer
