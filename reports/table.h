#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "metrics/paired_comparison.h"
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

/// The level of `*`: a cell differs from that of the named row or column (TableSpec::against).
inline constexpr double kSignificance = 0.05;

/// Ids of trials, shared by what is of the same trials; nullptr where there is none.
using TrialIds = std::shared_ptr<const std::vector<std::string>>;

/// What a cell's trials say together. Numbers are scaled.
struct Measured {
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

  bool is_number() const { return kind == Kind::number; }
  std::int64_t n() const { return static_cast<std::int64_t>(samples.size()); }
  std::int64_t undefined() const;
  bool partial() const { return n() < planned; }
};

/// The trials that a cell was made from.
struct CellTrials {
  /// All that row and column select, with a value or without, each once, in the order of the sweep.
  TrialIds ids;
  // Of those with a value:
  bool stale = false;                     // some trial is
  std::vector<std::string> numerics;      // the different ones; mixed: > 1
  std::vector<std::string> mixed_fields;  // in which they differ, seed and task apart
};

/// What the paper prints in a cell's place: a number, a text or nothing.
struct InPaper {
  std::optional<double> number;
  std::optional<std::string> text;
  std::string erratum;  // what is known to be wrong with it
  bool is_there() const { return number || text; }
};

/// How a cell stands among those of its column (or row: TableSpec::best_of_row).
struct Standing {
  bool best = false;
  bool second = false;  // the best but for those
  /// With the cell that it is tested against; absent where there is no test. Holm's family is the
  /// table.
  std::optional<metrics::PairedComparison> comparison;
  bool differs() const { return comparison && comparison->significant(kSignificance); }
};

/// A cell of a table: what is shown, and everything that it was made from. CellMaker fills in what
/// was measured and of which trials, make_table the rest.
struct Cell {
  using Kind = Measured::Kind;
  Measured measured;
  CellTrials trials;
  InPaper published;
  Standing standing;
  Better better = Better::none;
  std::optional<int> digits;  // decimals shown; absent: as many as it has, at most 6
  bool sign_shown = false;    // the number is a difference
  Spread errors = Spread::deviation;

  /// Mean minus published number, where there are both.
  std::optional<double> difference() const;
};

/// A row's or a column's head.
struct Head {
  std::string key;
  std::string group;
  std::string name;
};

/// A finished table, ready to be rendered.
struct Table {
  std::string key;    // TableSpec::key
  std::string title;  // TableSpec::title
  std::vector<Head> rows;
  std::vector<Head> columns;
  std::vector<std::vector<Cell>> cells;  // (rows, columns)
  double confidence = 0.95;
  Spread errors = Spread::deviation;
  std::string published_title;  // where the published numbers are from; empty: none
  bool best_of_row = false;     // TableSpec::best_of_row
  std::string against;          // name of the row or column that cells are compared with
};

/// Marks the best and the second best of each column (or row), from what cells show.
void mark_best(Table& table);

/// What the sections of a report are made from; all of it must outlive their making.
struct Ingredients {
  const Definition& definition;
  const Dataset& data;
  const std::vector<std::size_t>& trials;  // of data that the report selects, ascending
  const Published& published;
};

class CellMaker;

/// Computes a table whose names were checked; what is wrong with its cells is in
/// CellMaker::problems.
Table make_table(const TableSpec& spec, const Ingredients& from, CellMaker& maker);

}  // namespace petlab::reports
