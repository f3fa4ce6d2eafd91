#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "metrics/seed_statistics.h"
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

/// One metric of one task of a side beside the baseline, or of all tasks together.
struct Comparison {
  std::string side;
  std::string task;  ///< empty: all tasks
  std::string metric;
  std::int64_t pairs = 0;     ///< of equal task and seed, and of what both sides vary
  std::int64_t unpaired = 0;  ///< scores of either that have no partner
  std::optional<double> baseline_mean;
  std::optional<double> mean;
  std::optional<double> effect;               ///< mean of side - baseline over the pairs
  std::optional<metrics::Interval> interval;  ///< of the effect, Student's t
  std::optional<double> standardised;         ///< effect / deviation of the differences (d_z)
  std::optional<double> p;                    ///< paired t test, two-sided
  std::optional<double> adjusted_p;           ///< Holm's, over all of the request's comparisons
  std::string verdict;                        ///< in words
};

struct CompareResult {
  std::vector<Comparison> comparisons;
  std::vector<std::string> notes;
};

/// Pairs the sides with the baseline over seeds and tasks, and over fields that both vary in the
/// same way. Below three pairs nothing is said about a difference. Throws std::invalid_argument
/// where a side selects nothing, or has several trials for one seed (naming the fields in which
/// they differ).
CompareResult compare(const results::ScoreReader& reader, const CompareRequest& request);

}  // namespace petlab::analysis
