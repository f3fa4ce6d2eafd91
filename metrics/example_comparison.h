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

/// A trial's test predictions and the gold answers, equally many and in the order of the examples.
/// A class is a number, a score a decimal number; "none" is neither.
struct KeptPredictions {
  std::vector<std::string> gold;
  std::vector<std::string> predicted;
};

/// Reads two files that a trial kept (evaluation.keep_predictions), one line per example; the lines
/// of .jsonl files are JSON strings. Throws InputError for a file that cannot be read, is empty or
/// not UTF-8, for a line that is not a JSON string, and for files of different lengths.
KeptPredictions read_predictions(const std::filesystem::path& gold,
                                 const std::filesystem::path& predicted);

/// Predictions of systems a and b trained with the same seed.
struct SeedPredictions {
  std::string seed;  // for messages
  KeptPredictions a;
  KeptPredictions b;
};

/// Compares systems a and b by the examples that each predicts correctly.
struct ExampleComparison {
  std::int64_t examples = 0;
  /// (seeds), only for accuracy: tests which of the two is right about an example.
  std::vector<McNemarTest> mcnemar;
  /// For metric(a) - metric(b). Absent if the metric is undefined (crossed_bootstrap).
  std::optional<CrossedBootstrap> bootstrap;
};

/// What would most narrow the interval: more seeds or more examples.
enum class Limit { seeds, examples };

/// The larger part of the standard error. With only one seed it is the seeds.
Limit limit_of(const CrossedBootstrap& bootstrap);

/// Compares systems by any metric of metric_table(); text metrics use the options of training.
/// `num_labels` is the task's number of classes; 0 means the number that occurs, at least two. It
/// only matters for "none", which counts as the opposite class if there are two
/// (metrics/t5_labels.h). Throws InputError if the gold answers of two systems or seeds differ,
/// since all must be scored on the same examples, and for a line that is neither a class nor a
/// score. Throws std::invalid_argument without seeds, with fewer than two examples, and for a
/// metric that is undefined for this number of classes.
ExampleComparison compare_examples(const MetricRow& metric, std::span<const SeedPredictions> seeds,
                                   const CrossedBootstrapOptions& options = {},
                                   std::int64_t num_labels = 0);

}  // namespace petlab::metrics
