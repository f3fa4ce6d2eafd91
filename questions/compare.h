#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "metrics/example_comparison.h"
#include "metrics/paired_comparison.h"
#include "questions/sides.h"

namespace petlab::questions {

struct CompareRequest : SideQuestion {
  Side baseline;
  std::vector<Side> others;
  double confidence = 0.95;
  /// Returns a trial's predictions for a task's test data; absent if they were not kept. Empty
  /// function: no comparison over examples.
  std::function<std::optional<metrics::KeptPredictions>(const ResultOf& result,
                                                        const std::string& task)>
      predictions;
};

/// Compares a side with the baseline by one metric, on one task or by the mean over all tasks.
struct Comparison : metrics::PairedComparison {
  std::string side;
  std::string task;  ///< empty: all tasks
  std::string metric;
  /// Compares side and baseline over the examples of the test split, with the seeds of the pairs.
  /// Absent for the mean over tasks, and unless the predictions of each pair were kept.
  std::optional<metrics::ExampleComparison> examples;
  /// From McNemar's exact test for accuracy with one seed, otherwise from the bootstrap; adjusted
  /// by Holm's method over all comparisons.
  std::optional<double> examples_p;
  std::string verdict;  ///< in words

  struct OverExamples {
    metrics::Interval interval;
    double p = 1;
  };
  /// Over examples and seeds (CrossedBootstrap::interval), or with fewer than three seeds over
  /// examples alone.
  std::optional<OverExamples> over_examples() const;
};

struct CompareResult {
  std::vector<Comparison> comparisons;
  std::vector<std::string> notes;
};

/// Compares the sides with the baseline over seeds, task by task, by the rule of
/// metrics/paired_comparison.h. Pairs also match in fields that vary in the same way on both sides.
/// If predictions were kept, compares over examples as well; unreadable or unpaired predictions are
/// noted. Throws std::invalid_argument if a side selects nothing, or has several trials for one
/// seed (naming the fields in which they differ).
CompareResult compare(const results::ScoreReader& reader, const CompareRequest& request);

}  // namespace petlab::questions
