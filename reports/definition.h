#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "results/condition.h"

namespace petlab::reports {

using results::Condition;

/// A conjunction of conditions; empty: selects everything.
struct Selection {
  std::vector<Condition> conditions;
};

/// The better direction, for marking the best value of a column.
enum class Better { none, higher, lower };

/// The spread over seeds that a cell or error bar shows. The interval is Student's t, 95 %.
enum class Spread { deviation, standard_error, interval, none };

/// How the value of a cell is computed and shown. Unset members come from the other axis, then from
/// the table's `cells`, then from the defaults in docs/reference/report-definitions.md.
struct CellSpec {
  /// Shows a field of the trial (bls_bits, training_learning_rate, …) instead of a metric's value.
  std::optional<std::string> value;
  /// Shows a text with trial fields in braces (`{module_bottleneck}/{module_sparsity_ratio*100}`).
  std::optional<std::string> text;
  /// If not empty, the value of a seed is the mean over these selections, all of which must exist.
  std::vector<Selection> average_over;
  std::optional<double> scale;  // factor for display; default for metrics: as in tables
  std::optional<int> digits;    // number of decimals, 0 to 12
  std::optional<Better> better;
  int line = 0;
};

/// A row or a column. With `each`, one line for every combination of the fields' values.
struct Line {
  std::string key;    // unique in its axis; the default of `name` and `published`
  std::string name;   // shown; with `each`, `{field}` is replaced by the field's value
  std::string group;  // for rows: shown before the name
  Selection where;
  std::vector<std::string> each;  // fields
  bool separate = false;          // for rows: split trials that differ in more than the seed
  CellSpec cells;
  std::optional<std::string> published;  // key in the published table
  /// For columns: the key of a row. The column shows means relative to that row's; empty: absolute.
  std::string relative_to;
  int line = 0;
};

/// A table of a report.
struct TableSpec {
  std::string key;    // unique in its report, part of file names; empty for the only section
  std::string title;  // shown above the table; empty: none
  std::vector<Line> rows;
  std::vector<Line> columns;
  CellSpec cells;
  bool best_of_row = false;  // mark the best value of each row instead of each column
  Spread errors = Spread::deviation;
  bool column_first = false;  // settings of the column take precedence over those of the row
  /// Key of the row (with best_of_row: the column) to test the others against; empty: none.
  std::string against;
  int against_line = 0;
  std::string published;  // table of published.json; empty: none
  int published_line = 0;
};

/// Published numbers as points of a series: from one row of a published table, or from all rows
/// whose keys begin with a text.
struct PublishedPoints {
  std::string table;
  std::string row;                      // exactly this row, or
  std::string rows;                     // the rows with this prefix; one of the two is set
  std::variant<double, std::string> x;  // a number, or the column that contains it
  std::string y;                        // column
  int line = 0;
};

/// A curve of a figure. With `each`, one curve for every combination of the fields' values.
struct SeriesSpec {
  Line line;
  std::vector<PublishedPoints> published;
};

/// An axis of a figure.
struct FigureAxis {
  std::string name;  // empty: the name of its content
  bool log = false;
  /// For x, cells.value is a trial field, `bls_percent` or `step`. For y, a metric or anything that
  /// cells of a table can show except texts.
  CellSpec cells;
  Selection where;  // for y: conditions on the metric
  int line = 0;
};

/// A figure of a report: for each series, a point per x, aggregated over seeds.
struct FigureSpec {
  std::string key;
  std::string title;
  FigureAxis x;
  FigureAxis y;
  std::vector<SeriesSpec> series;
  std::vector<SeriesSpec> horizontal;  // lines across the figure, at the mean of all trials of each
  Spread errors = Spread::deviation;
};

/// The test that decides which variants of a ranking differ, after Friedman's: by Nemenyi's
/// critical difference, or Wilcoxon's test with Holm's correction.
enum class PairTest { nemenyi, wilcoxon };

/// Average ranks of variants over tasks, with their critical-difference diagram (Demšar 2006).
struct RanksSpec {
  std::string key;
  std::string title;
  std::vector<Line> variants;
  std::vector<Line> tasks;  // the value of a task at a variant has one sample for each seed
  PairTest test = PairTest::nemenyi;  // shown as bars
  double level = 0.05;                // significance level of all tests
};

/// A part of a report.
using SectionSpec = std::variant<TableSpec, FigureSpec, RanksSpec>;

/// A report, as defined by its YAML file (docs/reference/report-definitions.md).
struct Definition {
  std::string file;  // for messages
  std::string name;
  std::string about;
  std::vector<std::string> sweeps;  // empty: the sweeps of --sweep, else the database's only sweep
  Selection where;
  std::map<std::string, std::int64_t> backbone_parameters;  // for bls_percent, by backbone
  std::vector<std::string> notes;                           // printed below the table
  std::vector<SectionSpec> sections;                        // at least one
};

/// Parses the YAML text of a definition; messages call it `file`. Throws base::FileProblemsError
/// with all problems of the text. The existence of fields is checked later, with the data
/// (check_names in names.h).
Definition parse_definition(const std::string& text, const std::string& file);

}  // namespace petlab::reports
