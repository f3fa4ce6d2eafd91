#pragma once

#include <cstdint>

namespace petlab::bench {

/// Times the products of a RoBERTa-base layer in isolation, as training steps compute them: the
/// forward product and the input's gradient for each frozen matrix, `rows` tokens at a time, in
/// float32 or in bfloat16 with the copies that products read. Each of the twelve layers has its own
/// matrices. The result is the speed that a step could reach.
struct ProductRates {
  std::int64_t rows = 352;
  int threads = 1;
  bool bf16 = false;
  int turns = 4;  // passes over all layers; the median of each kind of matrix counts
};
void time_products(const ProductRates& options);

}  // namespace petlab::bench
