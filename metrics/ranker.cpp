#include "metrics/ranker.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <numeric>
#include <utility>

namespace petlab::metrics {
namespace {

// Shorter columns than this are ranked by std::sort.
constexpr int kDigitBits = 11;
constexpr std::size_t kBuckets = std::size_t{1} << kDigitBits;

// Converts doubles to integers with the same order; -0.0 equals 0.0.
std::uint64_t sort_key(double value) {
  const auto bits = std::bit_cast<std::uint64_t>(value + 0.0);
  return (bits >> 63) != 0 ? ~bits : bits | (std::uint64_t{1} << 63);
}

std::size_t index(std::uint64_t item) { return item & 0xFFFFFFFF; }

// Twice the average rank of elements [first, last) of the sorted column.
std::uint32_t twice_rank(std::size_t first, std::size_t last) {
  return static_cast<std::uint32_t>(first + last + 1);
}

}  // namespace

std::vector<std::uint32_t> Ranker::twice_ranks(std::span<const double> values) {
  std::vector<std::uint32_t> ranks(values.size());
  if (values.empty()) return ranks;
  if (!rank_by_counting(values, ranks)) rank_by_sorting(values, ranks);
  return ranks;
}

// Rounded scores have few distinct values, so they are counted in a hash table that fits the cache,
// and only the distinct values are sorted. Returns false if there are too many.
bool Ranker::rank_by_counting(std::span<const double> values, std::vector<std::uint32_t>& ranks) {
  constexpr int kSlotBits = 16;
  constexpr std::size_t kMask = (std::size_t{1} << kSlotBits) - 1;
  if (values.size() < kBuckets) return false;
  const std::size_t most = std::min(values.size() / 4, std::size_t{1} << (kSlotBits - 1));
  std::vector<std::uint32_t> slots(kMask + 1, 0);  // 1 + the place in keys and counts
  std::vector<std::uint64_t> keys;
  std::vector<std::uint32_t> counts;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::uint64_t key = sort_key(values[i]);
    std::size_t slot = (key * 0x9E3779B97F4A7C15ULL) >> (64 - kSlotBits);
    while (slots[slot] != 0 && keys[slots[slot] - 1] != key) slot = (slot + 1) & kMask;
    if (slots[slot] == 0) {
      if (keys.size() == most) return false;
      keys.push_back(key);
      counts.push_back(0);
      slots[slot] = static_cast<std::uint32_t>(keys.size());
    }
    ranks[i] = slots[slot] - 1;
    counts[ranks[i]]++;
  }
  std::vector<std::uint32_t> order(keys.size());
  std::iota(order.begin(), order.end(), 0U);
  std::sort(order.begin(), order.end(),
            [&keys](std::uint32_t a, std::uint32_t b) { return keys[a] < keys[b]; });
  std::size_t first = 0;
  for (const std::uint32_t place : order) {
    const std::size_t last = first + counts[place];
    counts[place] = twice_rank(first, last);
    first = last;
  }
  for (std::uint32_t& rank : ranks) rank = counts[rank];
  return true;
}

// Sorts the highest 32 bits of the keys' range, each with its element's index: half the bytes of
// complete keys. Complete keys are compared only where these bits are equal.
void Ranker::rank_by_sorting(std::span<const double> values, std::vector<std::uint32_t>& ranks) {
  std::uint64_t low = ~std::uint64_t{0};
  std::uint64_t high = 0;
  for (const double value : values) {
    low = std::min(low, sort_key(value));
    high = std::max(high, sort_key(value));
  }
  const int dropped = std::max(0, static_cast<int>(std::bit_width(high - low)) - 32);
  items_.resize(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    items_[i] = (sort_key(values[i]) - low) >> dropped << 32 | i;
  }
  sort_items();
  const auto key = [&values](std::uint64_t item) { return sort_key(values[index(item)]); };
  for (std::size_t first = 0; first < items_.size();) {
    std::size_t last = first + 1;
    bool tie = true;
    for (; last < items_.size() && items_[last] >> 32 == items_[first] >> 32; ++last) {
      tie = tie && (dropped == 0 || key(items_[last]) == key(items_[first]));
    }
    if (!tie) {
      std::sort(items_.begin() + static_cast<std::ptrdiff_t>(first),
                items_.begin() + static_cast<std::ptrdiff_t>(last),
                [&key](std::uint64_t a, std::uint64_t b) { return key(a) < key(b); });
    }
    while (first < last) {
      std::size_t end = tie ? last : first + 1;
      while (end < last && key(items_[end]) == key(items_[first])) ++end;
      const std::uint32_t rank = twice_rank(first, end);
      for (; first < end; ++first) ranks[index(items_[first])] = rank;
    }
  }
}

// Radix sort by the upper 32 bits, least significant digit first. Passes in which all items share
// the digit are skipped.
void Ranker::sort_items() {
  constexpr int kPasses = 3;
  if (items_.size() < kBuckets) {
    std::sort(items_.begin(), items_.end());
    return;
  }
  const auto digit = [](std::uint64_t item, int pass) {
    return (item >> (32 + pass * kDigitBits)) & (kBuckets - 1);
  };
  std::vector<std::uint32_t> counts(kBuckets * kPasses, 0);
  for (const std::uint64_t item : items_) {
    for (int pass = 0; pass < kPasses; ++pass) {
      counts[static_cast<std::size_t>(pass) * kBuckets + digit(item, pass)]++;
    }
  }
  other_.resize(items_.size());
  for (int pass = 0; pass < kPasses; ++pass) {
    std::uint32_t* const count = counts.data() + static_cast<std::size_t>(pass) * kBuckets;
    if (count[digit(items_.front(), pass)] == items_.size()) continue;
    std::uint32_t start = 0;
    for (std::size_t bucket = 0; bucket < kBuckets; ++bucket) {
      start += std::exchange(count[bucket], start);
    }
    for (const std::uint64_t item : items_) other_[count[digit(item, pass)]++] = item;
    items_.swap(other_);
  }
}

}  // namespace petlab::metrics
