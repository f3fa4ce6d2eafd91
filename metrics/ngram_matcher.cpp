#include "metrics/ngram_matcher.h"

#include <algorithm>

namespace petlab::metrics {
namespace {

constexpr std::size_t kMaskBits = 64;
// For references with more words, position masks cost more than hashing n-grams.
constexpr std::size_t kMostWords = 12;

constexpr std::size_t words_for(std::size_t positions) {
  return (positions + kMaskBits - 1) / kMaskBits;
}

}  // namespace

// Each item has a mask of its positions in the reference. For the hypothesis's n-gram that ends at
// item i, the mask of its end positions in the reference is the mask of item i and-ed with the
// shifted mask of the shorter n-gram before it. Distinct n-grams end at distinct positions, so
// letting each hypothesis n-gram use up one position of its mask clips exactly.
template <std::size_t kOrders>
void NgramMatcher::match_word(std::span<const std::uint32_t> reference,
                              std::span<const std::uint32_t> hypothesis,
                              std::span<std::int64_t> matches) {
  for (std::size_t i = 0; i < reference.size(); ++i) {
    masks_[reference[i]] |= std::uint64_t{1} << i;
  }
  std::uint64_t ends[kOrders] = {};
  std::uint64_t used[kOrders] = {};
  for (const std::uint32_t item : hypothesis) {
    const std::uint64_t mask = item == kNone ? 0 : masks_[item];
    for (std::size_t n = kOrders - 1; n > 0; --n) ends[n] = (ends[n - 1] << 1) & mask;
    ends[0] = mask;
    for (std::size_t n = 0; n < kOrders; ++n) {
      const std::uint64_t free = ends[n] & ~used[n];
      used[n] |= free & (0 - free);
    }
  }
  for (std::size_t n = 0; n < kOrders; ++n) matches[n] += __builtin_popcountll(used[n]);
}

void NgramMatcher::match_words(std::span<const std::uint32_t> reference,
                               std::span<const std::uint32_t> hypothesis, std::uint32_t items,
                               std::span<std::int64_t> matches) {
  const std::size_t words = words_for(reference.size());
  const std::size_t orders = matches.size();
  masks_.assign((items + 1) * words, 0);  // the last stays empty, for kNone
  for (std::size_t i = 0; i < reference.size(); ++i) {
    masks_[reference[i] * words + i / kMaskBits] |= std::uint64_t{1} << (i % kMaskBits);
  }
  rows_.assign(2 * orders * words, 0);
  std::uint64_t* const ends = rows_.data();
  std::uint64_t* const used = ends + orders * words;
  std::size_t alive = 0;  // orders in which the last item had a match
  for (const std::uint32_t item : hypothesis) {
    const std::uint64_t* const mask = masks_.data() + std::min(item, items) * words;
    // Rows are only read if they were written for the last item, whose order was alive then.
    const std::size_t top = std::min(alive + 1, orders);
    alive = 0;
    for (std::size_t n = top; n-- > 0;) {
      std::uint64_t* const row = ends + n * words;
      const std::uint64_t* const shorter = n > 0 ? row - words : nullptr;
      std::uint64_t* const taken = used + n * words;
      std::uint64_t any = 0;
      std::uint64_t carried = 0;
      bool free = true;
      for (std::size_t w = 0; w < words; ++w) {
        std::uint64_t bits = mask[w];
        if (n > 0) {
          const std::uint64_t before = shorter[w];
          bits &= before << 1 | carried;
          carried = before >> (kMaskBits - 1);
        }
        row[w] = bits;
        any |= bits;
        const std::uint64_t open = free ? bits & ~taken[w] : 0;
        if (open != 0) {
          taken[w] |= open & (0 - open);
          ++matches[n];
          free = false;
        }
      }
      if (any != 0 && alive == 0) alive = n + 1;
    }
  }
}

void NgramMatcher::match(std::span<const std::uint32_t> reference,
                         std::span<const std::uint32_t> hypothesis, std::uint32_t items,
                         std::span<std::int64_t> matches) {
  if (reference.size() <= kMaskBits) {
    const auto run = [&](auto&& with) {
      masks_.assign(items, 0);
      with();
    };
    switch (matches.size()) {
      case 1:
        return run([&] { match_word<1>(reference, hypothesis, matches); });
      case 2:
        return run([&] { match_word<2>(reference, hypothesis, matches); });
      case 4:
        return run([&] { match_word<4>(reference, hypothesis, matches); });
      case 6:
        return run([&] { match_word<6>(reference, hypothesis, matches); });
      default:
        break;
    }
  }
  if (words_for(reference.size()) <= kMostWords) {
    match_words(reference, hypothesis, items, matches);
    return;
  }
  match(std::span(&reference, 1), hypothesis, items, matches);
}

void NgramMatcher::start_order(std::size_t ngrams) {
  std::size_t capacity = std::max<std::size_t>(table_.size(), 64);
  while (capacity < 2 * ngrams) capacity *= 2;
  if (capacity != table_.size() || ++stamp_ == 0) {
    table_.assign(capacity, Entry{});
    stamp_ = 1;
  }
  table_mask_ = 63;
  while (table_mask_ + 1 < 2 * ngrams) table_mask_ = 2 * table_mask_ + 1;
  ngrams_ = 0;
}

std::size_t NgramMatcher::slot_of(std::uint64_t key) const {
  const std::uint64_t hash = (key ^ key >> 29) * 0x9E3779B97F4A7C15ULL;
  return static_cast<std::size_t>(hash >> 20) & table_mask_;
}

std::uint32_t NgramMatcher::intern(std::uint32_t prefix, std::uint32_t item) {
  const std::uint64_t key = static_cast<std::uint64_t>(prefix) << 32 | item;
  for (std::size_t i = slot_of(key);; i = (i + 1) & table_mask_) {
    Entry& entry = table_[i];
    if (entry.stamp != stamp_) {
      entry = {key, ngrams_, stamp_};
      return ngrams_++;
    }
    if (entry.key == key) return entry.id;
  }
}

std::uint32_t NgramMatcher::look_up(std::uint32_t prefix, std::uint32_t item) const {
  if (prefix == kNone || item == kNone) return kNone;
  const std::uint64_t key = static_cast<std::uint64_t>(prefix) << 32 | item;
  for (std::size_t i = slot_of(key);; i = (i + 1) & table_mask_) {
    const Entry& entry = table_[i];
    if (entry.stamp != stamp_) return kNone;
    if (entry.key == key) return entry.id;
  }
}

void NgramMatcher::match(std::span<const std::span<const std::uint32_t>> references,
                         std::span<const std::uint32_t> hypothesis, std::uint32_t items,
                         std::span<std::int64_t> matches) {
  std::size_t positions = 0;
  if (reference_ids_.size() < references.size()) reference_ids_.resize(references.size());
  for (std::size_t r = 0; r < references.size(); ++r) {
    reference_ids_[r].assign(references[r].begin(), references[r].end());
    positions += references[r].size();
  }
  hypothesis_ids_.assign(hypothesis.begin(), hypothesis.end());
  std::uint32_t distinct = items;
  for (std::size_t n = 1; n <= matches.size(); ++n) {
    // An n-gram's number is stored at the position where it begins.
    if (n > 1) {
      start_order(positions);
      for (std::size_t r = 0; r < references.size(); ++r) {
        std::vector<std::uint32_t>& ids = reference_ids_[r];
        const std::size_t size = references[r].size() < n ? 0 : references[r].size() - n + 1;
        for (std::size_t i = 0; i < size; ++i) ids[i] = intern(ids[i], references[r][i + n - 1]);
        ids.resize(size);
      }
      const std::size_t size = hypothesis.size() < n ? 0 : hypothesis.size() - n + 1;
      for (std::size_t i = 0; i < size; ++i) {
        hypothesis_ids_[i] = look_up(hypothesis_ids_[i], hypothesis[i + n - 1]);
      }
      hypothesis_ids_.resize(size);
      distinct = ngrams_;
    }
    largest_.assign(distinct, 0);
    counts_.assign(distinct, 0);
    for (std::size_t r = 0; r < references.size(); ++r) {
      for (const std::uint32_t id : reference_ids_[r]) {
        largest_[id] = std::max(largest_[id], ++counts_[id]);
      }
      for (const std::uint32_t id : reference_ids_[r]) counts_[id] = 0;
    }
    std::int64_t matched = 0;
    for (const std::uint32_t id : hypothesis_ids_) {
      if (id == kNone || largest_[id] == 0) continue;
      --largest_[id];
      ++matched;
    }
    if (matched == 0 && n < matches.size()) return;  // no longer n-gram can match either
    matches[n - 1] += matched;
  }
}

}  // namespace petlab::metrics
