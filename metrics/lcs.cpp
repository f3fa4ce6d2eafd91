#include "metrics/lcs.h"

#include <algorithm>
#include <cmath>

namespace petlab::metrics {
namespace {

constexpr std::size_t kWordBits = 64;
constexpr std::size_t kLittle = 1 << 18;  // words of 64 bits: 2 MiB

}  // namespace

void LongestCommonSubsequence::set_reference(std::span<const std::uint32_t> reference,
                                             std::uint32_t items) {
  reference_ = reference;
  items_ = items;
  words_ = (reference.size() + kWordBits - 1) / kWordBits;
  dense_ = items * words_ <= kLittle;
  if (dense_) {
    masks_.assign(items * words_, 0);
    for (std::size_t i = 0; i < reference.size(); ++i) {
      masks_[reference[i] * words_ + i / kWordBits] |= std::uint64_t{1} << (i % kWordBits);
    }
    return;
  }
  masks_.assign(words_, 0);
  starts_.assign(items + 2, 0);
  positions_.resize(reference.size());
  // Counted with an offset of two, so that placing the items moves each start to its final value.
  for (const std::uint32_t item : reference) ++starts_[item + 2];
  for (std::size_t i = 2; i < starts_.size(); ++i) starts_[i] += starts_[i - 1];
  for (std::size_t i = 0; i < reference.size(); ++i) {
    positions_[starts_[reference[i] + 1]++] = static_cast<std::uint32_t>(i);
  }
}

// A row has a 0 where the table of lengths grows by one from one reference prefix to the next.
void LongestCommonSubsequence::advance(std::uint32_t item, const std::uint64_t* from,
                                       std::uint64_t* to) {
  if (item >= items_) {
    std::copy_n(from, words_, to);
    return;
  }
  const auto positions =
      dense_ ? std::span<const std::uint32_t>()
             : std::span(positions_).subspan(starts_[item], starts_[item + 1] - starts_[item]);
  for (const std::uint32_t at : positions)
    masks_[at / kWordBits] |= std::uint64_t{1} << (at % kWordBits);
  const std::uint64_t* const mask = masks_.data() + (dense_ ? item * words_ : 0);
  std::uint64_t carry = 0;
  for (std::size_t w = 0; w < words_; ++w) {
    const std::uint64_t row = from[w];
    const std::uint64_t common = row & mask[w];
    const std::uint64_t sum = row + common;
    const std::uint64_t carried = sum + carry;
    carry = static_cast<std::uint64_t>(sum < row) | static_cast<std::uint64_t>(carried < sum);
    to[w] = carried | (row & ~mask[w]);
  }
  for (const std::uint32_t at : positions) masks_[at / kWordBits] = 0;
}

std::size_t LongestCommonSubsequence::length(std::span<const std::uint32_t> candidate) {
  rows_.assign(words_, ~std::uint64_t{0});
  for (const std::uint32_t item : candidate) advance(item, rows_.data(), rows_.data());
  std::size_t length = 0;
  for (std::size_t i = 0; i < reference_.size(); ++i) {
    length += (rows_[i / kWordBits] >> (i % kWordBits) & 1) == 0;
  }
  return length;
}

// Computes the rows of the candidate's items after `first`, which is copied.
void LongestCommonSubsequence::fill_rows(std::span<const std::uint32_t> candidate,
                                         const std::uint64_t* first) {
  rows_.resize((candidate.size() + 1) * words_);
  std::copy_n(first, words_, rows_.begin());
  for (std::size_t j = 0; j < candidate.size(); ++j) {
    advance(candidate[j], rows_.data() + j * words_, rows_.data() + (j + 1) * words_);
  }
}

void LongestCommonSubsequence::mark(std::span<const std::uint32_t> candidate,
                                    std::span<char> in_common) {
  const std::size_t size = candidate.size();
  std::size_t step = std::max<std::size_t>(size, 1);
  if ((size + 1) * words_ > kLittle) {
    step = static_cast<std::size_t>(std::sqrt(static_cast<double>(size))) + 1;
  }
  const std::size_t blocks = (size + step - 1) / step;
  kept_.resize(std::max<std::size_t>(blocks, 1) * words_);
  std::fill_n(kept_.begin(), words_, ~std::uint64_t{0});
  rows_.assign(kept_.begin(), kept_.begin() + static_cast<std::ptrdiff_t>(words_));
  for (std::size_t j = 0; j + step < blocks * step; ++j) {
    advance(candidate[j], rows_.data(), rows_.data());
    if ((j + 1) % step != 0) continue;
    std::copy_n(rows_.begin(), words_,
                kept_.begin() + static_cast<std::ptrdiff_t>((j + 1) / step * words_));
  }
  std::size_t i = reference_.size();
  std::size_t j = size;
  for (std::size_t block = blocks; block-- > 0 && i > 0;) {
    const std::size_t first = block * step;
    fill_rows(candidate.subspan(first, j - first), kept_.data() + block * words_);
    while (i > 0 && j > first) {
      const std::size_t row = (j - first) * words_;
      if (reference_[i - 1] == candidate[j - 1]) {
        in_common[i - 1] = 1;
        --i;
        --j;
      } else if ((rows_[row + (i - 1) / kWordBits] >> ((i - 1) % kWordBits) & 1) == 0) {
        --j;  // dropping the reference's item would shorten it
      } else {
        --i;
      }
    }
  }
}

}  // namespace petlab::metrics
