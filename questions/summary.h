#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "results/scores.h"

namespace petlab::questions {

struct SummaryRequest {
  std::vector<results::Condition> where;
  /// What makes a row. Empty: the variant, where sweeps have some, and all fields in which the
  /// trials of a variant differ, seeds apart.
  std::vector<results::Word> by;
  std::optional<results::Word> pivot;  ///< each of its values is a column (of each metric)
  std::vector<std::string> metrics;    ///< empty: all
  std::string split = "test";
};

/// One metric over the trials of a row: in general over seeds.
struct SummaryCell {
  std::optional<double> mean;       ///< absent: a value is undefined, or there is none yet
  std::optional<double> deviation;  ///< sample deviation, n - 1; absent for n < 2
  std::int64_t n = 0;
  std::int64_t undefined = 0;  ///< of n
};

struct SummaryRow {
  std::vector<results::Value> key;                ///< as Summary::by
  std::vector<std::optional<SummaryCell>> cells;  ///< as Summary::columns; absent: no such score
  std::int64_t pending = 0;                       ///< trials without a result
};

struct Summary {
  std::vector<std::string> by;
  std::vector<std::string> columns;  ///< "accuracy", "cola", "cola accuracy"
  std::vector<SummaryRow> rows;      ///< in the order in which trials were recorded
  std::int64_t trials = 0;           ///< that the question is about
  std::vector<std::string> notes;    ///< what the numbers do not tell by themselves
};

/// Mean and deviation over seeds. Tasks are never pooled: `task` is among the rows where there are
/// several. Throws std::invalid_argument where nothing is selected, naming the unknown word.
Summary summarise(const results::ScoreReader& reader, const SummaryRequest& request);

}  // namespace petlab::questions
