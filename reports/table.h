#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "reports/dataset.h"
#include "reports/definition.h"
#include "reports/published.h"

namespace petlab::reports {

/// One seed's (or trial's) part in a cell.
struct Sample {
  std::vector<std::string> trial_ids;  // several under average_over
  std::int64_t seed = 0;
  std::optional<double> value;  // scaled; absent: undefined
};

/// A cell of a table: what is shown, and everything that it was made from. Numbers are scaled.
struct Cell {
  enum class Kind { missing, undefined, number, text };
  Kind kind = Kind::missing;

  /// Over the samples; absent where n is too small for them (n < 1; the last four: n < 2) or a
  /// sample is undefined.
  std::optional<double> mean;
  std::optional<double> deviation;       // sample deviation, n - 1
  std::optional<double> standard_error;  // deviation / sqrt(n)
  std::optional<double> ci_low;          // Student-t, Table::confidence
  std::optional<double> ci_high;
  std::string text;    // of Kind::text
  std::string reason;  // of Kind::missing: why

  std::vector<Sample> samples;  // by seed, then trial id
  std::int64_t planned = 0;     // samples that the sweep plans; n = samples.size()
  bool spread = true;           // false: a value of the configuration, the same in all samples

  std::optional<double> published;
  std::optional<std::string> published_text;
  std::string erratum;               // what is known to be wrong with the published value
  std::optional<double> difference;  // mean - published

  Better better = Better::none;
  bool best = false;                      // of its column (or row: TableSpec::best_of_row)
  bool stale = false;                     // some trial is
  std::vector<std::string> numerics;      // the different ones of its trials; mixed: > 1
  std::vector<std::string> mixed_fields;  // in which its trials differ, seed and task apart
  std::optional<int> digits;              // decimals shown; absent: as many as it has, at most 6

  std::int64_t n() const { return static_cast<std::int64_t>(samples.size()); }
  std::int64_t undefined() const;
  bool partial() const { return n() < planned; }
};

/// A row's or a column's head.
struct Head {
  std::string key;
  std::string group;
  std::string name;
};

/// How far a sweep is.
struct SweepProgress {
  std::string sweep;
  std::int64_t trials = 0;
  std::vector<std::pair<std::string, std::int64_t>> states;  // with their counts, by name
};

/// A finished table, ready to be rendered.
struct Table {
  std::string name;
  std::string about;
  std::vector<SweepProgress> progress;
  std::vector<Head> rows;
  std::vector<Head> columns;
  std::vector<std::vector<Cell>> cells;  // (rows, columns)
  double confidence = 0.95;
  std::string published_title;  // where the published numbers are from; empty: none
  std::vector<std::string> notes;
};

/// Everything in `definition` that `data` and `published` do not have, as `FILE:LINE: …` with the
/// nearest known word: fields that no trial has and that are no field of a metric (nothing is said
/// about fields while there is no trial); words that Dataset::known_words lacks; other words that
/// no trial has and that resemble one which it has and the definition does not select (a misspelt
/// variant); tables, rows and columns of the published numbers.
std::vector<std::string> unknown_names(const Definition& definition, const Dataset& data,
                                       const Published& published);

/// Computes the table. Throws DefinitionError for what unknown_names finds, and where a cell
/// selects several values of one trial or takes values of several tasks, metrics or splits for
/// those of seeds. Words that no trial has and that may be meant are noted below it. The order of
/// `data.scores` changes nothing, to the bit.
Table make_table(const Definition& definition, const Dataset& data, const Published& published);

}  // namespace petlab::reports
