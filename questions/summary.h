#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "results/scores.h"

namespace petlab::questions {

struct SummaryRequest {
  std::vector<results::Condition> where;
  /// The words that identify a row. Empty: the variant, if sweeps have some, and all fields in
  /// which the trials of a variant differ, except for the seed.
  std::vector<results::Word> by;
  std::optional<results::Word> pivot;  ///< each of its values is a column (per metric)
  std::vector<std::string> metrics;    ///< empty: all
  std::string split = "test";
};

/// One metric over the trials of a row, usually over seeds.
struct SummaryCell {
  std::optional<double> mean;       ///< absent if a value is undefined or there is none yet
  std::optional<double> deviation;  ///< sample deviation, n - 1; absent for n < 2
  std::int64_t n = 0;
  std::int64_t undefined = 0;  ///< of n
};

struct SummaryRow {
  std::vector<results::Value> key;  ///< in the order of Summary::by
  /// in the order of Summary::columns; absent: no such score
  std::vector<std::optional<SummaryCell>> cells;
  // Trials without a result:
  std::int64_t pending = 0;
  std::int64_t stopped_early = 0;
};

struct Summary {
  std::vector<std::string> by;
  std::vector<std::string> columns;  ///< "accuracy", "cola", "cola accuracy"
  std::vector<SummaryRow> rows;      ///< in the order in which trials were recorded
  std::int64_t trials = 0;           ///< trials selected
  std::vector<std::string> notes;    ///< explanations of the numbers
};

/// Computes mean and deviation over seeds. Never pools tasks: if there are several, `task` is in
/// the rows. Throws std::invalid_argument as check_names(), as explain_nothing() if there are no
/// scores, and for a pivot that is also in `by`.
Summary summarise(const results::ScoreReader& reader, const SummaryRequest& request);

}  // namespace petlab::questions
