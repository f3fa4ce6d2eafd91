#pragma once

#include <initializer_list>
#include <vector>

#include "trainer/compute/dropout.h"
#include "trainer/compute/layer_norm.h"
#include "trainer/compute/product_weight.h"
#include "trainer/compute/torch.h"

namespace petlab::trainer {

// LibTorch's operations where the encoder has a faster way on a CPU in float32; elsewhere they are
// LibTorch's own. All are differentiable.

/// x (rows, in) · weightᵀ (out, in) + bias (out), which may be undefined. By the libraries that
/// product_libraries() names, which read the weight where it lies. With a short product of float32
/// on a CPU, x, weight and outer gradient are rounded to bfloat16 for the products, of which the
/// result and all gradients are float32 again; elsewhere that says nothing.
Tensor apply_linear(const Tensor& x, const Tensor& weight, const Tensor& bias,
                    bool short_product = false);

/// The same of a backbone's weight, by the copies that it has where it is frozen.
Tensor apply_linear(const Tensor& x, const ProductWeight& weight, const Tensor& bias);

/// A linear layer by what it is made of, which must outlive it.
struct LinearLayer {
  const ProductWeight& weight;
  const Tensor& bias;
};
/// apply_linear of x with each of the layers. With short products x is rounded once for all, and
/// its gradients are summed as they are widened.
std::vector<Tensor> apply_linears(const Tensor& x, std::initializer_list<LinearLayer> layers);

/// apply_linear of gelu of apply_linear: `output` after `inner`. Of frozen layers without a copy of
/// what is between the two. With short products gelu's derivative is rounded to bfloat16 then, and
/// nothing between the two layers is wider.
Tensor apply_gelu_between(const Tensor& x, const LinearLayer& inner, const LinearLayer& output);

/// norm(a + b)
Tensor add_norm(const Tensor& a, const Tensor& b, const LayerNorm& norm);
/// norm(drop(a) + b), the same to the last bit, in one pass over the rows.
Tensor add_dropped_norm(const Tensor& a, const Tensor& b, const LayerNorm& norm,
                        const DropoutPlace& place);

/// gelu in its erf form.
Tensor apply_gelu(const Tensor& x);

}  // namespace petlab::trainer
