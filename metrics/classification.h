#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace petlab::metrics {

/// Maximum number of classes; the table of counts grows with its square.
inline constexpr std::int64_t kMaxLabels = 4096;

/// Counts of examples by gold and predicted label: sufficient for accuracy, F1 and Matthews, in
/// memory that does not grow with the examples. Counts of parts of a corpus add up.
class Confusion {
 public:
  /// Starts without examples, with labels 0 .. num_labels-1. Throws std::invalid_argument unless 1
  /// <= num_labels <= kMaxLabels.
  explicit Confusion(std::int64_t num_labels);

  /// Counts whole columns, (n) each. Throws std::invalid_argument if the lengths differ or are 0,
  /// or naming the element (from 0) whose label is outside the classes.
  Confusion(std::span<const std::int64_t> gold, std::span<const std::int64_t> predicted,
            std::int64_t num_labels);

  /// Counts `times` equal examples. Throws std::invalid_argument for a label outside the classes.
  void add(std::int64_t gold, std::int64_t predicted, std::int64_t times = 1);

  /// Counts `times` examples whose prediction is not a label (reference/method.md, "T5-base"):
  /// wrong for accuracy; counted as the opposite class if there are two, else as no class.
  void add_invalid(std::int64_t gold, std::int64_t times = 1);

  /// Adds the counts of `other`, which must have the same number of labels.
  void merge(const Confusion& other);

  std::int64_t num_labels() const { return num_labels_; }
  std::int64_t total() const { return total_; }
  std::int64_t invalid() const { return invalid_; }
  std::int64_t correct() const;
  std::int64_t count(std::int64_t gold, std::int64_t predicted) const;
  /// Number of examples with this gold label, and of predictions of this label.
  std::int64_t gold_total(std::int64_t label) const;
  std::int64_t predicted_total(std::int64_t label) const;

 private:
  std::int64_t num_labels_;
  std::int64_t total_ = 0;
  std::int64_t invalid_ = 0;
  std::vector<std::int64_t> counts_;  // (num_labels, num_labels + 1), last column: no label
};

// All functions below throw std::invalid_argument without examples. Where the textbook value is 0/0
// they follow GLUE (scikit-learn): see convention_note().

/// Fraction of correct predictions, in [0, 1].
double accuracy(const Confusion& confusion);

/// F1 of class 1 against class 0: 2·tp / (2·tp + fp + fn); 0 if no example and no prediction is
/// positive. Throws std::invalid_argument unless there are exactly two classes.
double f1(const Confusion& confusion);

/// Unweighted mean of each class's F1, over the classes that occur in gold or prediction.
double f1_macro(const Confusion& confusion);

/// Matthews correlation, for more than two classes R_K, in [-1, 1]; 0 if all examples or all
/// predictions have the same class.
double matthews(const Confusion& confusion);

/// Explains why the value of `metric` ("f1", "matthews") is a convention here rather than a
/// measurement, for display next to it; empty if the value is defined.
std::string_view convention_note(const Confusion& confusion, std::string_view metric);

}  // namespace petlab::metrics
