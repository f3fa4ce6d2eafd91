#pragma once

#include <string>
#include <vector>

#include "metrics/paired_comparison.h"
#include "results/scores.h"

namespace petlab::analysis {

/// Trials that are compared with others.
struct Side {
  std::string name;
  std::vector<results::Condition> where;
};

/// `variant=a and seed<45` as a side, or the bare name of a variant. Throws std::invalid_argument.
Side parse_side(const std::string& text);

struct CompareRequest {
  std::vector<results::Condition> where;  ///< of all sides
  Side baseline;
  std::vector<Side> others;
  std::vector<std::string> metrics;  ///< empty: all
  std::string split = "test";
  double confidence = 0.95;
};

/// One metric of one task of a side and the baseline, or its mean over all tasks.
struct Comparison : metrics::PairedComparison {
  std::string side;
  std::string task;  ///< empty: all tasks
  std::string metric;
  std::string verdict;  ///< in words
};

struct CompareResult {
  std::vector<Comparison> comparisons;
  std::vector<std::string> notes;
};

/// Compares the sides with the baseline over seeds, task by task, and over fields that both vary in
/// the same way, by the rule of metrics/paired_comparison.h. Throws std::invalid_argument
/// where a side selects nothing, or has several trials for one seed (naming the fields in which
/// they differ).
CompareResult compare(const results::ScoreReader& reader, const CompareRequest& request);

}  // namespace petlab::analysis
