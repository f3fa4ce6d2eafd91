#pragma once

#include <memory>

#include "trainer/compute/torch.h"

namespace petlab::trainer {

/// A backbone's weight (out, in) as products read it: in float32 as it came, with short products in
/// bfloat16. A frozen one then has two copies, made when they are first wanted, each in the order
/// in which the library reads it for a product in its direction; in any other order the library
/// would make such a copy in every product. The pages of the original are let go where they are a
/// file's. Copies of a ProductWeight share them. Not for several threads at once.
class ProductWeight {
 public:
  ProductWeight() = default;
  /// `short_products` as in Placement.
  ProductWeight(Tensor weight, bool short_products);

  bool is_short() const { return copies_ != nullptr; }
  bool is_trained() const { return weight_.requires_grad(); }
  /// As it came.
  const Tensor& original() const { return weight_; }
  /// What forward_product reads.
  Tensor forward() const;
  /// What input_gradient_product reads.
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
