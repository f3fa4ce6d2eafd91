#include "trainer/compute/product_weight.h"

#include <utility>

#include "trainer/compute/products.h"
#include "trainer/compute/tensors.h"

namespace petlab::trainer {

ProductWeight::ProductWeight(Tensor weight, bool short_products)
    : weight_(std::move(weight)), copies_(short_products ? std::make_shared<Copies>() : nullptr) {}

Tensor ProductWeight::copy_of(Tensor Copies::*place, Tensor (*pack)(const Tensor&)) const {
  if (copies_ == nullptr) return weight_;
  if (is_trained()) return weight_.to(at::kBFloat16);
  Tensor& copy = (*copies_).*place;
  if (!copy.defined()) {
    copy = pack(weight_.to(at::kBFloat16));
    release_pages(weight_);
  }
  return copy;
}

Tensor ProductWeight::forward() const { return copy_of(&Copies::forward, packed_for_forward); }

Tensor ProductWeight::gradient() const { return copy_of(&Copies::gradient, packed_for_gradient); }

}  // namespace petlab::trainer
