#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <vector>

namespace petlab::metrics {

/// Draws `samples` rows of random numbers in sequence from one generator and calls `use(sample,
/// row)` for each, in parallel if `threads` > 1. Rows are processed independently, so results do
/// not depend on the threads. Neither function may throw.
template <class Row, class Draw, class Use>
void for_each_sample(std::int64_t samples, int threads, Draw&& draw, Use&& use) {
  const auto at_once = static_cast<std::int64_t>(threads) * 4;
  std::vector<Row> rows(static_cast<std::size_t>(std::min(samples, at_once)));
  for (std::int64_t first = 0; first < samples; first += at_once) {
    const std::int64_t count = std::min(at_once, samples - first);
    for (std::int64_t i = 0; i < count; ++i) draw(rows[static_cast<std::size_t>(i)]);
    std::atomic<std::int64_t> next{0};
    const auto work = [&] {
      for (std::int64_t i = next++; i < count; i = next++) {
        use(first + i, rows[static_cast<std::size_t>(i)]);
      }
    };
    std::vector<std::jthread> helpers;
    for (int t = 1; t < threads && t < count; ++t) helpers.emplace_back(work);
    work();
  }
}

}  // namespace petlab::metrics
