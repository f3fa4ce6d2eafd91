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

/// Conditions that all hold; empty: everything.
struct Selection {
  std::vector<Condition> conditions;
};

/// Which direction is better, for marking the best value of a column.
enum class Better { none, higher, lower };

/// What a cell or an error bar shows of the spread over seeds; the interval is Student's t, 95 %.
enum class Spread { deviation, standard_error, interval, none };

/// How the value of a cell is made and shown. What is not set is taken from the other axis, then
/// from the table's `cells`, then from the defaults of docs/reference/report-definitions.md.
struct CellSpec {
  /// A field of the trial (bls_bits, training_learning_rate, …) instead of the metric's value.
  std::optional<std::string> value;
  /// A text with fields of the trial in braces (`{module_bottleneck}/{module_sparsity_ratio*100}`).
  std::optional<std::string> text;
  /// The value of a seed is the mean over these selections, all of which it must have.
  std::vector<Selection> average_over;
  std::optional<double> scale;  // shown times this; metrics: as tables print them
  std::optional<int> digits;    // decimals shown, 0 to 12
  std::optional<Better> better;
  int line = 0;
};

/// A row or a column: one, or with `each` one for every combination of the fields' values.
struct Line {
  std::string key;    // unique in its axis; the default of `name` and `published`
  std::string name;   // shown; `{field}` stands for the field's value under `each`
  std::string group;  // rows: shown before the name
  Selection where;
  std::vector<std::string> each;  // fields
  bool separate = false;          // rows: split what differs in more than the seed
  CellSpec cells;
  std::optional<std::string> published;  // key in the published table
  /// Columns: key of the row whose mean is 1, as which the others are shown; empty: as they are.
  std::string relative_to;
  int line = 0;
};

/// A table of a report.
struct TableSpec {
  std::string key;    // unique in its report, of a file's name; empty where it is the only section
  std::string title;  // shown above it; empty: none
  std::vector<Line> rows;
  std::vector<Line> columns;
  CellSpec cells;
  bool best_of_row = false;  // the best value of a row is marked, not that of a column
  Spread errors = Spread::deviation;
  bool column_first = false;  // where row and column both say what a cell shows, the column does
  /// Key of the row (with best_of_row: column) that others are tested against; empty: none.
  std::string against;
  int against_line = 0;
  std::string published;  // table of published.json; empty: none
  int published_line = 0;
};

/// Published numbers as points of a series: of one row of a published table, or of all rows whose
/// keys begin with a text.
struct PublishedPoints {
  std::string table;
  std::string row;                      // exactly this one, or
  std::string rows;                     // those that begin so; one of the two is set
  std::variant<double, std::string> x;  // a number, or the column that has it
  std::string y;                        // column
  int line = 0;
};

/// A curve of a figure, or with `each` one for every combination of the fields' values.
struct SeriesSpec {
  Line line;
  std::vector<PublishedPoints> published;
};

/// An axis of a figure.
struct FigureAxis {
  std::string name;  // empty: what it shows
  bool log = false;
  /// x: cells.value is a field of the trial, `bls_percent` or `step`. y: a metric, or what cells of
  /// a table can show but texts.
  CellSpec cells;
  Selection where;  // y: of the metric
  int line = 0;
};

/// A figure of a report: points at the different x of each series, over seeds.
struct FigureSpec {
  std::string key;
  std::string title;
  FigureAxis x;
  FigureAxis y;
  std::vector<SeriesSpec> series;
  std::vector<SeriesSpec> horizontal;  // lines across the figure, at the mean of all their trials
  Spread errors = Spread::deviation;
};

/// A part of a report.
using SectionSpec = std::variant<TableSpec, FigureSpec>;

/// A report as its YAML file says it (docs/reference/report-definitions.md).
struct Definition {
  std::string file;  // for messages
  std::string name;
  std::string about;
  std::vector<std::string> sweeps;  // empty: the database's only sweep, or what --sweep names
  Selection where;
  std::map<std::string, std::int64_t> backbone_parameters;  // for bls_percent, by backbone
  std::vector<std::string> notes;                           // printed below the table
  std::vector<SectionSpec> sections;                        // at least one
};

/// Parses the YAML text of a definition. `file` is what messages call it. Throws
/// base::FileProblemsError with all problems of the text; whether fields exist is checked where the
/// data is known (unknown_names in names.h).
Definition parse_definition(const std::string& text, const std::string& file);

}  // namespace petlab::reports
