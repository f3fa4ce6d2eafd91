#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace petlab::metrics {

/// Most classes that are counted: their table of counts has the square of it.
inline constexpr std::int64_t kMaxLabels = 4096;

/// How often each gold label met each predicted one: all that accuracy, F1 and Matthews need, in
/// memory that does not grow with the examples. Counts of parts of a corpus add up.
class Confusion {
 public:
  /// No examples yet, labels 0 .. num_labels-1. Throws std::invalid_argument unless
  /// 1 <= num_labels <= kMaxLabels.
  explicit Confusion(std::int64_t num_labels);

  /// Counts whole columns, (n) each. Throws std::invalid_argument where the lengths differ, where
  /// there is no element, or where a label is outside the classes (which element, from 0).
  Confusion(std::span<const std::int64_t> gold, std::span<const std::int64_t> predicted,
            std::int64_t num_labels);

  /// Counts an example, or as many alike as `times`. Throws std::invalid_argument for a label
  /// outside the classes.
  void add(std::int64_t gold, std::int64_t predicted, std::int64_t times = 1);

  /// Counts an example, or `times` of them, whose prediction is no label (reference/method.md,
  /// "T5-base"): wrong for accuracy; with two classes it counts as the opposite class, with more as
  /// no class at all.
  void add_invalid(std::int64_t gold, std::int64_t times = 1);

  /// Adds the counts of `other`, which must have as many labels.
  void merge(const Confusion& other);

  std::int64_t num_labels() const { return num_labels_; }
  std::int64_t total() const { return total_; }
  std::int64_t invalid() const { return invalid_; }
  std::int64_t correct() const;
  std::int64_t count(std::int64_t gold, std::int64_t predicted) const;
  /// Examples with this gold label, and predictions of this label.
  std::int64_t gold_total(std::int64_t label) const;
  std::int64_t predicted_total(std::int64_t label) const;

 private:
  std::int64_t num_labels_;
  std::int64_t total_ = 0;
  std::int64_t invalid_ = 0;
  std::vector<std::int64_t> counts_;  // (num_labels, num_labels + 1), last column: no label
};

// Each of these throws std::invalid_argument where there are no examples. Where the textbook value
// is 0/0 they follow GLUE (scikit-learn): see convention_note().

/// Fraction of correct predictions, in [0, 1].
double accuracy(const Confusion& confusion);

/// F1 of class 1 against class 0: 2·tp / (2·tp + fp + fn); 0 where no example and no prediction is
/// positive. Throws std::invalid_argument unless there are exactly two classes.
double f1(const Confusion& confusion);

/// Unweighted mean of each class's F1, over the classes that occur in gold or prediction.
double f1_macro(const Confusion& confusion);

/// Matthews correlation, also of more than two classes (R_K), in [-1, 1]; 0 where all examples or
/// all predictions are of one class.
double matthews(const Confusion& confusion);

/// Why `metric` ("f1", "matthews") is a convention and no measurement here, to be shown beside the
/// value; empty where the value is defined.
std::string_view convention_note(const Confusion& confusion, std::string_view metric);

}  // namespace petlab::metrics
