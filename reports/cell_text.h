#pragma once

#include <string>
#include <utility>
#include <vector>

#include "reports/report.h"

namespace petlab::reports {

/// A cell for people, in two parts so that a column can be aligned where they meet.
struct CellText {
  std::string value;    // `75.31`, `—`, `undefined`
  std::string rest;     // ` ± 0.42 (2)`
  std::string marks;    // of its flags
  bool aligned = true;  // false: words that stand in the column as a whole
  std::string whole() const { return value + rest + marks; }
};

/// `75.31 ± 0.42 (2)`, or `75.31 [71.5, 79.1] (2)` as TableSpec::errors has it; `(1/2)` where seeds
/// are missing; a bare value where nothing varies; then
/// the marks † stale, ‡ mixed numerics, § mixed configurations.
CellText cell_text(const Cell& cell);

/// The published value; `—` where the cell has none.
std::string published_text(const Cell& cell);
/// Mean minus published value, `=` or `≠` for texts; empty where there is nothing to compare.
std::string difference_text(const Cell& cell);

/// What is known to be wrong with a table's published values: each text once, in the order of its
/// cells, with a letter by which the cells refer to it.
class Errata {
 public:
  explicit Errata(const Table& table);

  /// `a`, `b`, … `z`, `aa` …; empty where the cell's published value has no erratum.
  std::string letter(const Cell& cell) const;
  /// The letter raised, for text: `ᵃ`.
  std::string mark(const Cell& cell) const;
  /// `ᵃ erratum of the published value: TEXT`, a line each.
  std::vector<std::string> lines() const;
  /// Pairs of letter and text.
  std::vector<std::pair<std::string, std::string>> all() const;

 private:
  std::vector<std::string> texts_;
};

/// `sweep NAME: 7 of 10 trials done (1 failed, 2 new)`.
std::string progress_text(const SweepProgress& progress);

/// What the table's signs mean: one line for each that occurs in it but Errata's, and where its
/// published numbers are from.
std::vector<std::string> legend(const Table& table);
/// What a figure's bars and points are, where its published points are from, and what it lacks.
std::vector<std::string> legend(const Figure& figure);
/// The errata of a figure's published points, where they have no table to be marked in.
std::vector<std::string> errata_of(const Figure& figure);

/// The points of a figure: a row a point, grouped by series.
Table table_of_points(const Figure& figure);

/// Whether any cell of the row has a published value.
bool has_published(const std::vector<Cell>& row);

}  // namespace petlab::reports
