#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace petlab::metrics {

/// Counts TER's edits between word sequences: insertions, deletions, substitutions, and shifts of
/// blocks of the hypothesis, chosen greedily as in Tercom and sacrebleu 2.6 (blocks of at most 10
/// words, moved by at most 50, 1,000 candidates per sentence, a beam of 25 around the diagonal).
/// Only the cells of the beam are stored: memory and time are proportional to the words. Owns
/// buffers, so each thread needs its own.
class TerEdits {
 public:
  /// The number of edits. For an empty reference, the hypothesis's length.
  std::int64_t count(std::span<const std::uint32_t> hypothesis,
                     std::span<const std::uint32_t> reference);

 private:
  enum class Edit : std::uint8_t { match, substitute, insert, remove, none };
  struct Shift {
    std::int32_t gain = 0;
    std::int32_t length = 0;
    std::int32_t start = 0;
    std::int32_t target = 0;
    bool better_than(const Shift& other) const;
  };

  // The computed columns of a row of the distance matrix, and the storage of its cells.
  struct Row {
    std::size_t first = 0;
    std::size_t last = 0;   // one past the last
    std::size_t cells = 0;  // index of column `first`
  };

  void lay_out_rows();
  Edit edit_at(std::size_t row, std::size_t column) const;
  void fill_row(std::size_t row, std::uint32_t word, const std::int32_t* above, std::int32_t* costs,
                Edit* edits) const;
  std::int32_t fill_from(std::size_t first);
  std::int32_t trial_distance(std::size_t unchanged);
  void align();
  void shift_words(std::size_t start, std::size_t length, std::size_t target);
  void try_block(std::size_t start, std::size_t wanted, std::size_t length, Shift& best);
  Shift best_shift();

  std::span<const std::uint32_t> reference_;
  std::vector<std::uint32_t> words_;    // the hypothesis, shifted so far
  std::vector<std::uint32_t> shifted_;  // a candidate
  std::size_t width_ = 0;               // reference words + 1
  double ratio_ = 1.0;                  // reference words to hypothesis words
  double beam_ = 0.0;
  // Edit distances of prefixes and the edits that led there, by hypothesis words + 1 rows.
  std::vector<Row> rows_;
  std::vector<std::int32_t> costs_;
  std::vector<Edit> edits_;
  std::vector<std::int32_t> trial_;             // the candidate's last two rows
  std::vector<std::int32_t> position_;          // for each reference word: the hypothesis word
  std::vector<std::int32_t> reference_errors_;  // sums of errors before each word
  std::vector<std::int32_t> hypothesis_errors_;
  int candidates_ = 0;
};

}  // namespace petlab::metrics
