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

/// What a metric compares.
enum class MetricInput {
  labels,  // class labels, counted in a Confusion
  scores,  // real numbers
  text,    // texts; computed by metrics/bleu.h, chrf.h, ter.h, rouge.h, token_match.h
};

/// A metric, under the name that it has in sweep files, results, reports and `petlab score`.
struct MetricRow {
  std::string_view name;
  std::string_view help;  // one line
  MetricInput input = MetricInput::labels;
  bool higher_is_better = true;
  /// Tables print the value times this: 100 where the value is a fraction, 1 where it is a
  /// percentage.
  double printed_scale = 100;
  /// Set where input is labels; same errors as the functions of metrics/classification.h.
  double (*of_labels)(const Confusion& confusion) = nullptr;
  /// Set where input is scores; gold, then predicted. Undefined is std::nullopt.
  std::optional<double> (*of_scores)(std::span<const double> gold,
                                     std::span<const double> predicted) = nullptr;
  /// Set where input is text: the metric with the options of training, which are sacrebleu's
  /// defaults, and stemming for ROUGE (reference/method.md, "T5-base").
  std::unique_ptr<TextMetric> (*text_metric)() = nullptr;

  /// Where input is text: the score over all texts, each with one reference. Undefined
  /// (std::nullopt) without any text. Throws std::invalid_argument where they are not as many,
  /// InputError for what is not UTF-8.
  std::optional<double> of_texts(std::span<const std::string> references,
                                 std::span<const std::string> generated) const;
};

/// Every metric, in the order in which `petlab score --list` shows them.
std::span<const MetricRow> metric_table();

/// The row of that name; nullptr where there is none.
const MetricRow* find_metric(std::string_view name);

/// Whether more of a metric is better, that of the training loss included; std::nullopt where that
/// is not known, as of a worker's own metric.
std::optional<bool> higher_is_better(std::string_view metric);

/// The row of that name. Throws std::invalid_argument naming the nearest known name.
const MetricRow& metric_named(std::string_view name);

}  // namespace petlab::metrics
