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
  /// What a trial predicted for the test data of a task; absent if it was not kept. Empty: nothing
  /// is compared over examples.
  std::function<std::optional<metrics::KeptPredictions>(const ResultOf& result,
                                                        const std::string& task)>
      predictions;
};

/// One metric of one task of a side and the baseline, or its mean over all tasks.
struct Comparison : metrics::PairedComparison {
  std::string side;
  std::string task;  ///< empty: all tasks
  std::string metric;
  /// Side against baseline over the examples of the test split, with the seeds of the pairs. Absent
  /// for all tasks, and unless the predictions of each pair were kept.
  std::optional<metrics::ExampleComparison> examples;
  /// By McNemar's exact test of accuracy with one seed, else by the bootstrap; adjusted by Holm
  /// over the answer.
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

/// Compares the sides with the baseline over seeds, task by task, and over fields that both vary in
/// the same way, by the rule of metrics/paired_comparison.h. If predictions were kept, the examples
/// are compared as well; predictions that cannot be read or paired are noted. Throws
/// std::invalid_argument where a side selects nothing, or has several trials for one seed (naming
/// the fields in which they differ).
CompareResult compare(const results::ScoreReader& reader, const CompareRequest& request);

}  // namespace petlab::questions
