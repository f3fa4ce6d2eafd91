#pragma once

#include <cstdint>

namespace petlab::bench {

/// How fast the products of a RoBERTa-base's layer are alone, as a training step asks for them:
/// forward and the input's gradient of each frozen matrix, `rows` tokens at once, float32 or
/// bfloat16 with the copies that products read, of twelve layers with matrices of their own. What a
/// step reaches is measured against that.
struct ProductRates {
  std::int64_t rows = 352;
  int threads = 1;
  bool bf16 = false;
  int turns = 4;  // through all layers: the median of each kind of matrix counts
};
void time_products(const ProductRates& options);

}  // namespace petlab::bench
