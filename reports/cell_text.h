#pragma once

#include <string>
#include <utility>
#include <vector>

#include "reports/report.h"

namespace petlab::reports {

/// A cell as text, in two parts so that columns can be aligned at their boundary.
struct CellText {
  std::string value;    // `75.31`, `—`, `undefined`
  std::string rest;     // ` ± 0.42 (2)`
  std::string marks;    // symbols for its flags
  bool aligned = true;  // false: words that span the column
  std::string whole() const { return value + rest + marks; }
};

/// `75.31 ± 0.42 (2)`, or `75.31 [71.5, 79.1] (2)` depending on TableSpec::errors; `(1/2)` if seeds
/// are missing; only the value if nothing varies. Marks follow: † stale, ‡ mixed numerics, ¶ mixed
/// code, § mixed configurations.
CellText cell_text(const Cell& cell);

/// The published value, or `—` if there is none.
std::string published_text(const Cell& cell);
/// Mean minus published value, `=` or `≠` for texts; empty if one is missing.
std::string difference_text(const Cell& cell);

/// The known errors in a table's published values: distinct texts in the order of the cells, each
/// with a letter for references.
class Errata {
 public:
  explicit Errata(const Table& table);

  /// `a`, `b`, … `z`, `aa` …; empty if the cell's published value has no erratum.
  std::string letter(const Cell& cell) const;
  /// The letter as superscript for text output: `ᵃ`.
  std::string mark(const Cell& cell) const;
  /// `ᵃ erratum of the published value: TEXT`, one line each.
  std::vector<std::string> lines() const;
  /// Pairs of letter and text.
  std::vector<std::pair<std::string, std::string>> all() const;

 private:
  std::vector<std::string> texts_;
};

/// `sweep NAME: 7 of 10 trials done (1 failed, 2 new)`.
std::string progress_text(const SweepProgress& progress);

/// Explains the symbols used in the table, one line each, except Errata's, and names the source of
/// its published numbers.
std::vector<std::string> legend(const Table& table);
/// Explains the bars and points of a figure, the source of its published points, and missing data.
std::vector<std::string> legend(const Figure& figure);
/// The errata of a figure's published points, for figures without a table to mark them in.
std::vector<std::string> errata_of(const Figure& figure);

/// Explains the letters of ranks, with the tasks and missing data.
std::vector<std::string> legend(const Ranks& ranks);

/// The points of a figure as a table: one row per point, grouped by series.
Table table_of_points(const Figure& figure);

/// A section as a table: a figure's points, or the ranks of variants.
Table table_of(const Section& section);
/// The legend of a figure or of ranks without their picture, to which that of their table is added.
/// Begins with the results of the tests of ranks.
std::vector<std::string> legend_of_drawn(const Section& section);

/// True if a cell of the row has a published value.
bool has_published(const std::vector<Cell>& row);

}  // namespace petlab::reports
