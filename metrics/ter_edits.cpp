#include "metrics/ter_edits.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <tuple>

namespace petlab::metrics {
namespace {

constexpr std::size_t kLongestShift = 10;
constexpr std::ptrdiff_t kFarthestShift = 50;
constexpr int kMostCandidates = 1000;
constexpr double kBeam = 25;
constexpr std::int32_t kUnreached = 1 << 29;

}  // namespace

bool TerEdits::Shift::better_than(const Shift& other) const {
  return std::tuple(gain, length, -start, -target) >
         std::tuple(other.gain, other.length, -other.start, -other.target);
}

// Sets the columns of each row inside the beam: all of the first row, and the last one to its end.
void TerEdits::lay_out_rows() {
  const auto width = static_cast<double>(width_);
  rows_.clear();
  rows_.push_back({0, width_, 0});
  std::size_t cells = width_;
  std::size_t longest = width_;
  for (std::size_t row = 1; row <= words_.size(); ++row) {
    // In doubles, as in sacrebleu.
    const double diagonal = std::floor(static_cast<double>(row) * ratio_);
    const auto first = static_cast<std::size_t>(std::max(0.0, diagonal - beam_));
    const auto last =
        row == words_.size() ? width_ : static_cast<std::size_t>(std::min(width, diagonal + beam_));
    rows_.push_back({first, last, cells});
    cells += last - first;
    longest = std::max(longest, last - first);
  }
  costs_.resize(cells);
  edits_.resize(cells);
  trial_.resize(2 * longest);
}

// Fills a row of the distance matrix for the hypothesis's first `row` words, the last being `word`.
// `above` and `costs` start at their rows' first columns; columns outside are unreached.
void TerEdits::fill_row(std::size_t row, std::uint32_t word, const std::int32_t* above,
                        std::int32_t* costs, Edit* edits) const {
  const Row here = rows_[row];
  const Row upper = rows_[row - 1];
  const auto above_at = [&](std::size_t j) {
    return j >= upper.first && j < upper.last ? above[j - upper.first] : kUnreached;
  };
  std::int32_t before = kUnreached;  // the cell to the left
  for (std::size_t j = here.first; j < here.last; ++j) {
    std::int32_t cost = kUnreached;
    Edit edit = Edit::none;
    if (j == 0) {
      cost = above_at(0) + 1;
      edit = Edit::remove;
    } else {
      const bool same = word == reference_[j - 1];
      if (const std::int32_t diagonal_cost = above_at(j - 1) + (same ? 0 : 1);
          diagonal_cost < cost) {
        cost = diagonal_cost;
        edit = same ? Edit::match : Edit::substitute;
      }
      if (const std::int32_t above_cost = above_at(j) + 1; above_cost < cost) {
        cost = above_cost;
        edit = Edit::remove;
      }
      if (before + 1 < cost) {
        cost = before + 1;
        edit = Edit::insert;
      }
    }
    costs[j - here.first] = before = cost;
    if (edits != nullptr) edits[j - here.first] = edit;
  }
}

std::int32_t TerEdits::fill_from(std::size_t first) {
  for (std::size_t i = first; i <= words_.size(); ++i) {
    fill_row(i, words_[i - 1], costs_.data() + rows_[i - 1].cells, costs_.data() + rows_[i].cells,
             edits_.data() + rows_[i].cells);
  }
  return costs_.back();
}

// The distance of shifted_, which has its first `unchanged` words in common with words_.
std::int32_t TerEdits::trial_distance(std::size_t unchanged) {
  if (unchanged == shifted_.size()) return costs_.back();
  const std::int32_t* above = costs_.data() + rows_[unchanged].cells;
  for (std::size_t i = unchanged + 1; i <= shifted_.size(); ++i) {
    std::int32_t* const row = trial_.data() + (i % 2) * (trial_.size() / 2);
    fill_row(i, shifted_[i - 1], above, row, nullptr);
    above = row;
  }
  return above[width_ - 1 - rows_.back().first];
}

TerEdits::Edit TerEdits::edit_at(std::size_t row, std::size_t column) const {
  const Row& place = rows_[row];
  if (column < place.first || column >= place.last) return Edit::none;
  return edits_[place.cells + column - place.first];
}

// Follows the cheapest path to find the position of each reference word in the hypothesis (-1
// before the first word) and the wrong words of both.
void TerEdits::align() {
  std::size_t i = words_.size();
  std::size_t j = reference_.size();
  hypothesis_errors_.assign(i + 1, 0);
  reference_errors_.assign(j + 1, 0);
  position_.assign(j, -1);
  while (i > 0 || j > 0) {
    const Edit edit = i == 0 ? Edit::insert : edit_at(i, j);
    switch (edit) {
      case Edit::match:
      case Edit::substitute:
        --i;
        --j;
        position_[j] = static_cast<std::int32_t>(i);
        hypothesis_errors_[i + 1] = reference_errors_[j + 1] = edit == Edit::match ? 0 : 1;
        break;
      case Edit::remove:
        --i;
        hypothesis_errors_[i + 1] = 1;
        break;
      case Edit::insert:
        --j;
        position_[j] = static_cast<std::int32_t>(i) - 1;
        reference_errors_[j + 1] = 1;
        break;
      case Edit::none:
        throw std::logic_error("TER: the beam does not reach the end of the matrix");
    }
  }
  for (std::size_t k = 1; k < hypothesis_errors_.size(); ++k) {
    hypothesis_errors_[k] += hypothesis_errors_[k - 1];
  }
  for (std::size_t k = 1; k < reference_errors_.size(); ++k) {
    reference_errors_[k] += reference_errors_[k - 1];
  }
}

// Sets shifted_ to words_ with `length` words moved from `start` to before `target`.
void TerEdits::shift_words(std::size_t start, std::size_t length, std::size_t target) {
  shifted_ = words_;
  const auto at = [this](std::size_t i) {
    return shifted_.begin() + static_cast<std::ptrdiff_t>(i);
  };
  if (target < start) {
    std::rotate(at(target), at(start), at(start + length));
  } else if (target > start + length) {
    std::rotate(at(start), at(start + length), at(target));
  } else {
    const std::size_t end = std::min(words_.size(), target + length);
    std::rotate(at(start), at(start + length), at(end));
  }
}

// Tries to move the block of words_ at `start`, which equals the reference's block at `wanted`, to
// the positions of that block's words and of the word before it.
void TerEdits::try_block(std::size_t start, std::size_t wanted, std::size_t length, Shift& best) {
  // Only blocks with an error on both sides are moved, and never into themselves.
  if (hypothesis_errors_[start + length] == hypothesis_errors_[start]) return;
  if (reference_errors_[wanted + length] == reference_errors_[wanted]) return;
  const auto begin = static_cast<std::int32_t>(start);
  const auto size = static_cast<std::int32_t>(length);
  if (position_[wanted] >= begin && position_[wanted] < begin + size) return;
  std::int32_t last_target = -1;
  for (std::size_t k = 0; k <= length; ++k) {
    // Before the first word of the reference, else after word wanted + k - 1.
    const std::int32_t target = wanted + k == 0 ? 0 : position_[wanted + k - 1] + 1;
    if (target == last_target) continue;
    last_target = target;
    shift_words(start, length, static_cast<std::size_t>(target));
    const std::size_t unchanged = std::min(start, static_cast<std::size_t>(target));
    const Shift shift{costs_.back() - trial_distance(unchanged), size, begin, target};
    ++candidates_;
    if (best.length == 0 || shift.better_than(best)) best = shift;
  }
}

TerEdits::Shift TerEdits::best_shift() {
  Shift best;
  align();
  const auto hypothesis_size = static_cast<std::ptrdiff_t>(words_.size());
  const auto reference_size = static_cast<std::ptrdiff_t>(reference_.size());
  for (std::ptrdiff_t start = 0; start < hypothesis_size; ++start) {
    const std::ptrdiff_t from = std::max<std::ptrdiff_t>(0, start - kFarthestShift);
    const std::ptrdiff_t to = std::min(reference_size, start + kFarthestShift + 1);
    for (std::ptrdiff_t wanted = from; wanted < to; ++wanted) {
      const auto limit = static_cast<std::size_t>(
          std::min<std::ptrdiff_t>({static_cast<std::ptrdiff_t>(kLongestShift),
                                    hypothesis_size - start, reference_size - wanted}));
      const auto h = static_cast<std::size_t>(start);
      const auto r = static_cast<std::size_t>(wanted);
      for (std::size_t length = 1; length <= limit; ++length) {
        if (words_[h + length - 1] != reference_[r + length - 1]) break;
        try_block(h, r, length, best);
        if (candidates_ >= kMostCandidates) return best;
      }
    }
  }
  return best;
}

std::int64_t TerEdits::count(std::span<const std::uint32_t> hypothesis,
                             std::span<const std::uint32_t> reference) {
  if (reference.empty()) return static_cast<std::int64_t>(hypothesis.size());
  reference_ = reference;
  words_.assign(hypothesis.begin(), hypothesis.end());
  width_ = reference.size() + 1;
  ratio_ = words_.empty()
               ? 1.0
               : static_cast<double>(reference.size()) / static_cast<double>(words_.size());
  beam_ = kBeam < ratio_ / 2 ? std::ceil(ratio_ / 2 + kBeam) : kBeam;
  lay_out_rows();
  for (std::size_t j = 0; j < width_; ++j) costs_[j] = static_cast<std::int32_t>(j);
  candidates_ = 0;
  std::int64_t shifts = 0;
  std::int32_t distance = fill_from(1);
  while (distance > 0) {
    const Shift shift = best_shift();
    if (candidates_ >= kMostCandidates || shift.gain <= 0) break;
    ++shifts;
    shift_words(static_cast<std::size_t>(shift.start), static_cast<std::size_t>(shift.length),
                static_cast<std::size_t>(shift.target));
    words_.swap(shifted_);
    distance = fill_from(static_cast<std::size_t>(std::min(shift.start, shift.target)) + 1);
  }
  return shifts + distance;
}

}  // namespace petlab::metrics
