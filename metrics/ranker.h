#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace petlab::metrics {

/// Ranks columns of finite numbers one after the other, reusing its memory (at most 16 bytes per
/// element).
class Ranker {
 public:
  /// Twice the average rank of each value: integers from 2 to 2n. Equal values share their rank
  /// (0.0 equals -0.0). Accepts fewer than 2^31 values.
  std::vector<std::uint32_t> twice_ranks(std::span<const double> values);

 private:
  bool rank_by_counting(std::span<const double> values, std::vector<std::uint32_t>& ranks);
  void rank_by_sorting(std::span<const double> values, std::vector<std::uint32_t>& ranks);
  void sort_items();

  std::vector<std::uint64_t> items_;
  std::vector<std::uint64_t> other_;
};

}  // namespace petlab::metrics
