#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "metrics/classification.h"
#include "metrics/text_metric.h"

namespace petlab::metrics {

/// The kind of values that a metric compares.
enum class MetricInput {
  labels,  // class labels, counted in a Confusion
  scores,  // real numbers
  text,    // texts; computed by metrics/bleu.h, chrf.h, ter.h, rouge.h, token_match.h
};

/// A metric, with its name in sweep files, results, reports and `petlab score`.
struct MetricRow {
  std::string_view name;
  std::string_view help;  // one line
  MetricInput input = MetricInput::labels;
  bool higher_is_better = true;
  /// Factor for printing in tables: 100 for fractions, 1 for percentages.
  double printed_scale = 100;
  /// Set if input is labels; same errors as the functions of metrics/classification.h.
  double (*of_labels)(const Confusion& confusion) = nullptr;
  /// Set if input is scores; takes gold, then predicted. std::nullopt if undefined.
  std::optional<double> (*of_scores)(std::span<const double> gold,
                                     std::span<const double> predicted) = nullptr;
  /// Set if input is text: creates the metric with the options of training, which are sacrebleu's
  /// defaults, and stemming for ROUGE (reference/method.md, "T5-base").
  std::unique_ptr<TextMetric> (*text_metric)() = nullptr;

  /// If input is text: the score over all texts, each with one reference; undefined (std::nullopt)
  /// without texts. Throws std::invalid_argument if their numbers differ, InputError if they are
  /// not UTF-8.
  std::optional<double> of_texts(std::span<const std::string> references,
                                 std::span<const std::string> generated) const;
};

/// Every metric, in the order in which `petlab score --list` shows them.
std::span<const MetricRow> metric_table();

/// The row with that name, or nullptr.
const MetricRow* find_metric(std::string_view name);

/// Whether higher values of a metric are better, also for the training loss and for metrics that
/// workers declare; std::nullopt if unknown.
std::optional<bool> higher_is_better(std::string_view metric);

/// Declares the direction of a worker's metric for this process. Throws std::invalid_argument if
/// another direction is known. May be called from several threads.
void declare_direction(const std::string& metric, bool higher_is_better);

/// The row with that name. Throws std::invalid_argument naming the nearest known name.
const MetricRow& metric_named(std::string_view name);

}  // namespace petlab::metrics
