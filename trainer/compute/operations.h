#pragma once

#include <initializer_list>
#include <vector>

#include "trainer/compute/dropout.h"
#include "trainer/compute/layer_norm.h"
#include "trainer/compute/product_weight.h"
#include "trainer/compute/torch.h"

namespace petlab::trainer {

// Operations that have a faster implementation for the encoder on a CPU in float32. Elsewhere they
// are LibTorch's. All are differentiable.

/// x (rows, in) · weightᵀ (out, in) + bias (out), which may be undefined. Uses the libraries in
/// product_libraries(), which read the weight in place. With `short_product`, on a CPU in float32,
/// x, weight and outer gradient are rounded to bfloat16 for the products, but the result and all
/// gradients are float32; elsewhere `short_product` has no effect.
Tensor apply_linear(const Tensor& x, const Tensor& weight, const Tensor& bias,
                    bool short_product = false);

/// The same for a backbone's weight. A frozen weight uses its copies.
Tensor apply_linear(const Tensor& x, const ProductWeight& weight, const Tensor& bias);

/// The parts of a linear layer, which must outlive it.
struct LinearLayer {
  const ProductWeight& weight;
  const Tensor& bias;
};
/// Calls apply_linear on x with each of the layers. With short products, x is rounded only once,
/// and its gradients are summed while they are widened.
std::vector<Tensor> apply_linears(const Tensor& x, std::initializer_list<LinearLayer> layers);

/// Applies `inner`, gelu and `output`. For frozen layers, nothing in between is copied. With short
/// products, these round gelu's derivative to bfloat16 and keep everything between the layers in
/// bfloat16.
Tensor apply_gelu_between(const Tensor& x, const LinearLayer& inner, const LinearLayer& output);

/// norm(a + b)
Tensor add_norm(const Tensor& a, const Tensor& b, const LayerNorm& norm);
/// norm((a + b) + c)
Tensor add_norm(const Tensor& a, const Tensor& b, const Tensor& c, const LayerNorm& norm);
/// norm(drop(a) + b), in one pass over the rows, with bitwise the same result.
Tensor add_dropped_norm(const Tensor& a, const Tensor& b, const LayerNorm& norm,
                        const DropoutPlace& place);
struct DroppedAndNormed {
  Tensor dropped, normed;
};
/// drop(a), or a if `place` is nullptr, and the norm of its sum with b.
DroppedAndNormed dropped_and_normed(const Tensor& a, const Tensor& b, const LayerNorm& norm,
                                    const DropoutPlace* place);

/// gelu in its erf form.
Tensor apply_gelu(const Tensor& x);

}  // namespace petlab::trainer
