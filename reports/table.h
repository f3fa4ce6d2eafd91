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

/// The contribution of one seed (or trial) to a cell.
struct Sample {
  std::vector<std::string> trial_ids;  // several with average_over
  std::int64_t seed = 0;
  std::optional<double> value;  // scaled; absent: undefined
};

/// The significance level of `*`: a cell differs from that of the row or column TableSpec::against.
inline constexpr double kSignificance = 0.05;

/// Ids of trials, shared by cells with the same trials; nullptr if there are none.
using TrialIds = std::shared_ptr<const std::vector<std::string>>;

/// The summary of a cell's trials. Numbers are scaled.
struct Measured {
  enum class Kind { missing, undefined, number, text };
  Kind kind = Kind::missing;
  /// Statistics of the samples; absent if n is too small (n < 1; for the last four n < 2) or a
  /// sample is undefined.
  std::optional<double> mean;
  std::optional<double> deviation;       // sample deviation, n - 1
  std::optional<double> standard_error;  // deviation / sqrt(n)
  std::optional<double> ci_low;          // Student-t, Table::confidence
  std::optional<double> ci_high;
  std::string text;    // for Kind::text
  std::string reason;  // for Kind::missing: why

  std::vector<Sample> samples;  // by seed, then trial id
  std::int64_t planned = 0;     // number of planned samples; n = samples.size()
  bool spread = true;           // false: a configuration value, equal in all samples

  bool is_number() const { return kind == Kind::number; }
  std::int64_t n() const { return static_cast<std::int64_t>(samples.size()); }
  std::int64_t undefined() const;
  bool partial() const { return n() < planned; }
};

/// The trials of a cell.
struct CellTrials {
  /// All trials that row and column select, with or without a value, without repeats, in the order
  /// of the sweep.
  TrialIds ids;
  bool stopped_early = false;  // values are missing because trials stopped early
  // For the trials with a value:
  bool stale = false;                     // at least one is stale
  std::vector<std::string> numerics;      // distinct ones; mixed if there are several
  std::vector<std::string> mixed_code;    // differences of what they ran (results/code.h)
  std::vector<std::string> mixed_fields;  // differing fields, except seed and task
};

/// The paper's content of a cell: a number, a text or nothing.
struct InPaper {
  std::optional<double> number;
  std::optional<std::string> text;
  std::string erratum;  // known error in it
  bool is_there() const { return number || text; }
};

/// The rank of a cell in its column (or row: TableSpec::best_of_row).
struct Standing {
  bool best = false;
  bool second = false;  // best after removing the best
  /// The test against the reference cell; absent if there is none. Holm's family is the table.
  std::optional<metrics::PairedComparison> comparison;
  bool differs() const { return comparison && comparison->significant(kSignificance); }
};

/// A cell of a table with all data for showing it. CellMaker fills in the measurements and their
/// trials, make_table the rest.
struct Cell {
  using Kind = Measured::Kind;
  Measured measured;
  CellTrials trials;
  InPaper published;
  Standing standing;
  Better better = Better::none;
  std::optional<int> digits;  // number of decimals; absent: all, at most 6
  bool sign_shown = false;    // the number is a difference
  Spread errors = Spread::deviation;

  /// Mean minus published number, if both exist.
  std::optional<double> difference() const;
};

/// The head of a row or column.
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
  std::string published_title;  // source of the published numbers; empty: none
  bool best_of_row = false;     // TableSpec::best_of_row
  std::string against;          // name of the row or column used for comparison
};

/// Marks the best and second best shown value of each column (or row).
void mark_best(Table& table);

/// The inputs for the sections of a report; must outlive their computation.
struct Ingredients {
  const Definition& definition;
  const Dataset& data;
  const std::vector<std::size_t>& trials;  // selected trials, as ascending indices into data
  const Published& published;
};

class CellMaker;

/// Computes a table with validated names. Problems go to CellMaker::problems.
Table make_table(const TableSpec& spec, const Ingredients& from, CellMaker& maker);

}  // namespace petlab::reports
