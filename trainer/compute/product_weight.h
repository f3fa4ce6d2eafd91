#pragma once

#include <memory>

#include "trainer/compute/torch.h"

namespace petlab::trainer {

/// A backbone's weight (out, in), prepared for products: unchanged in float32; in bfloat16 with
/// short products. A frozen short weight gets two copies on first use, one for each direction, in
/// the order in which the library reads it; otherwise, the library would make such a copy in every
/// product. If the original is memory-mapped, its pages are then released. Copies of a
/// ProductWeight share these copies. Not thread-safe.
class ProductWeight {
 public:
  ProductWeight() = default;
  /// `short_products` as in Placement.
  ProductWeight(Tensor weight, bool short_products);

  bool is_short() const { return copies_ != nullptr; }
  bool is_trained() const { return weight_.requires_grad(); }
  /// The unchanged weight.
  const Tensor& original() const { return weight_; }
  /// The weight for forward_product.
  Tensor forward() const;
  /// The weight for input_gradient_product.
  Tensor gradient() const;

 private:
  struct Copies {
    Tensor forward, gradient;
  };
  Tensor copy_of(Tensor Copies::*place, Tensor (*pack)(const Tensor&)) const;

  Tensor weight_;
  std::shared_ptr<Copies> copies_;  // nullptr without short products
};

}  // namespace petlab::trainer
