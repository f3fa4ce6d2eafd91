#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "metrics/crossed_bootstrap.h"
#include "metrics/mcnemar.h"
#include "metrics/metric_table.h"

namespace petlab::metrics {

/// What a trial predicted for the test data, and the right answers; equally many, in the order of
/// the examples. A class is a number, a score a decimal number, and "none" is neither.
struct KeptPredictions {
  std::vector<std::string> gold;
  std::vector<std::string> predicted;
};

/// Reads two files that a trial kept (evaluation.keep_predictions): a line per example; lines of a
/// file that ends in .jsonl are JSON strings. Throws InputError for a file that cannot be read, is
/// empty or not UTF-8, for a line that is no JSON string, and for files of different lengths.
KeptPredictions read_predictions(const std::filesystem::path& gold,
                                 const std::filesystem::path& predicted);

/// Predictions of systems a and b with the same seed.
struct SeedPredictions {
  std::string seed;  // for messages
  KeptPredictions a;
  KeptPredictions b;
};

/// Whether system a is better than system b, from the examples that they got right and wrong.
struct ExampleComparison {
  std::int64_t examples = 0;
  /// (seeds), for accuracy alone: which of the two is right about an example.
  std::vector<McNemarTest> mcnemar;
  /// Of the metric(a) - metric(b). Absent where the metric is undefined (crossed_bootstrap).
  std::optional<CrossedBootstrap> bootstrap;
};

/// What a claim lacks most.
enum class Limit { seeds, examples };

/// The larger part of the standard error: more of these shrink the interval most. Seeds, if there
/// is only one.
Limit limit_of(const CrossedBootstrap& bootstrap);

/// Compares by any metric of metric_table(); texts with the options of training. `num_labels` is
/// the task's number of classes; 0: as many as the labels need, at least two. Only "none" depends
/// on it: with two classes it counts as the opposite class (metrics/t5_labels.h).
/// Throws InputError if the gold answers of two systems or seeds differ, since all must be scored
/// on the same examples, and for a line that is neither a class nor a score. Throws
/// std::invalid_argument without a seed, with fewer than two examples, and for a metric that is not
/// defined for this number of classes.
ExampleComparison compare_examples(const MetricRow& metric, std::span<const SeedPredictions> seeds,
                                   const CrossedBootstrapOptions& options = {},
                                   std::int64_t num_labels = 0);

}  // namespace petlab::metrics
