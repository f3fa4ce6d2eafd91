#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace petlab::metrics {

/// Longest common subsequences by bit-parallel rows (Hyyrö 2004). Owns buffers, so each thread
/// needs its own.
class LongestCommonSubsequence {
 public:
  /// Sets the reference, whose items are numbers below `items`. It must outlive the following
  /// calls.
  void set_reference(std::span<const std::uint32_t> reference, std::uint32_t items);

  /// The length. Candidate items from `items` on are treated as absent from all references.
  std::size_t length(std::span<const std::uint32_t> candidate);

  /// Sets in_common[i] for each reference item i of the subsequence that rouge-score picks: it
  /// walks back from the ends and drops the reference's last item unless only dropping the
  /// candidate's keeps the length. Other entries are unchanged. Memory: one bit per pair of items
  /// if that is little; otherwise the rows between two kept ones are computed twice.
  void mark(std::span<const std::uint32_t> candidate, std::span<char> in_common);

 private:
  void advance(std::uint32_t item, const std::uint64_t* from, std::uint64_t* to);
  void fill_rows(std::span<const std::uint32_t> candidate, const std::uint64_t* first);

  std::span<const std::uint32_t> reference_;
  std::uint32_t items_ = 0;
  std::size_t words_ = 0;
  // The positions of each item in the reference: (items, words_) bits if that takes little memory;
  // otherwise positions, those of item i from starts_[i] on, and the bits of one item at a time.
  bool dense_ = true;
  std::vector<std::uint64_t> masks_;
  std::vector<std::uint32_t> starts_;
  std::vector<std::uint32_t> positions_;
  std::vector<std::uint64_t> rows_;
  std::vector<std::uint64_t> kept_;  // for mark(): rows kept at regular intervals
};

}  // namespace petlab::metrics
