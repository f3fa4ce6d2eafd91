#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace petlab::metrics {

/// Counts clipped n-gram matches between sequences of small numbers: for each order n, the sum over
/// distinct n-grams of the smaller of its count in the hypothesis and its largest count in any one
/// reference. Exact. Owns buffers, so each thread needs its own.
class NgramMatcher {
 public:
  static constexpr std::uint32_t kNone = 0xFFFFFFFF;  // a hypothesis item that no reference has

  /// `items` must exceed all numbers except kNone, which references must not contain. Adds to
  /// matches[n - 1] for n = 1 … matches.size().
  void match(std::span<const std::uint32_t> reference, std::span<const std::uint32_t> hypothesis,
             std::uint32_t items, std::span<std::int64_t> matches);

  /// The same for several references.
  void match(std::span<const std::span<const std::uint32_t>> references,
             std::span<const std::uint32_t> hypothesis, std::uint32_t items,
             std::span<std::int64_t> matches);

 private:
  template <std::size_t kOrders>
  void match_word(std::span<const std::uint32_t> reference,
                  std::span<const std::uint32_t> hypothesis, std::span<std::int64_t> matches);
  void match_words(std::span<const std::uint32_t> reference,
                   std::span<const std::uint32_t> hypothesis, std::uint32_t items,
                   std::span<std::int64_t> matches);

  // Maps (number of an n-gram without its last item, last item) to the n-gram's number.
  struct Entry {
    std::uint64_t key = 0;
    std::uint32_t id = 0;
    std::uint32_t stamp = 0;
  };
  void start_order(std::size_t ngrams);
  std::uint32_t intern(std::uint32_t prefix, std::uint32_t item);
  std::uint32_t look_up(std::uint32_t prefix, std::uint32_t item) const;
  std::size_t slot_of(std::uint64_t key) const;

  std::vector<std::uint64_t> masks_;
  std::vector<std::uint64_t> rows_;
  std::vector<Entry> table_;
  std::size_t table_mask_ = 0;
  std::uint32_t stamp_ = 0;
  std::uint32_t ngrams_ = 0;
  std::vector<std::vector<std::uint32_t>> reference_ids_;
  std::vector<std::uint32_t> hypothesis_ids_;
  std::vector<std::uint32_t> largest_;  // count of each n-gram in any one reference
  std::vector<std::uint32_t> counts_;
};

}  // namespace petlab::metrics
