#include "metrics/lcs.h"

#include <algorithm>

namespace petlab::metrics {
namespace {

constexpr std::size_t kBits = 64;

}  // namespace

void LongestCommonSubsequence::set_reference(std::span<const std::uint32_t> reference,
                                             std::uint32_t items) {
  reference_ = reference;
  items_ = items;
  words_ = (reference.size() + kBits - 1) / kBits;
  masks_.assign(items * words_, 0);
  for (std::size_t i = 0; i < reference.size(); ++i) {
    masks_[reference[i] * words_ + i / kBits] |= std::uint64_t{1} << (i % kBits);
  }
}

// A row has a 0 where the table of lengths grows by one from a reference prefix to the next.
void LongestCommonSubsequence::advance(std::uint32_t item, const std::uint64_t* from,
                                       std::uint64_t* to) const {
  if (item >= items_) {
    std::copy_n(from, words_, to);
    return;
  }
  const std::uint64_t* const mask = masks_.data() + item * words_;
  std::uint64_t carry = 0;
  for (std::size_t w = 0; w < words_; ++w) {
    const std::uint64_t row = from[w];
    const std::uint64_t common = row & mask[w];
    const std::uint64_t sum = row + common;
    const std::uint64_t carried = sum + carry;
    carry = static_cast<std::uint64_t>(sum < row) | static_cast<std::uint64_t>(carried < sum);
    to[w] = carried | (row & ~mask[w]);
  }
}

std::size_t LongestCommonSubsequence::length(std::span<const std::uint32_t> candidate) {
  rows_.assign(words_, ~std::uint64_t{0});
  for (const std::uint32_t item : candidate) advance(item, rows_.data(), rows_.data());
  std::size_t length = 0;
  for (std::size_t i = 0; i < reference_.size(); ++i) {
    length += (rows_[i / kBits] >> (i % kBits) & 1) == 0;
  }
  return length;
}

void LongestCommonSubsequence::mark(std::span<const std::uint32_t> candidate,
                                    std::span<char> in_common) {
  rows_.resize((candidate.size() + 1) * words_);
  std::fill_n(rows_.begin(), words_, ~std::uint64_t{0});
  for (std::size_t j = 0; j < candidate.size(); ++j) {
    advance(candidate[j], rows_.data() + j * words_, rows_.data() + (j + 1) * words_);
  }
  std::size_t i = reference_.size();
  std::size_t j = candidate.size();
  while (i > 0 && j > 0) {
    if (reference_[i - 1] == candidate[j - 1]) {
      in_common[i - 1] = 1;
      --i;
      --j;
    } else if ((rows_[j * words_ + (i - 1) / kBits] >> ((i - 1) % kBits) & 1) == 0) {
      --j;  // dropping the reference's item would lose one
    } else {
      --i;
    }
  }
}

}  // namespace petlab::metrics
