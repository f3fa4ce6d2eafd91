#include "reports/show.h"

namespace petlab::reports {
namespace {

// A cell without its measured part.
Cell nothing_measured(const Cell& cell) {
  Cell made;
  made.digits = cell.digits;
  made.better = cell.better;
  made.reason = cell.reason;
  made.spread = false;
  return made;
}

Cell published_cell(const Cell& cell) {
  Cell made = nothing_measured(cell);
  made.reason = "nothing is published here";
  made.erratum = cell.erratum;
  if (cell.published) {
    made.kind = Cell::Kind::number;
    made.mean = cell.published;
  } else if (cell.published_text) {
    made.kind = Cell::Kind::text;
    made.text = *cell.published_text;
  }
  return made;
}

Cell difference_cell(const Cell& cell) {
  Cell made = nothing_measured(cell);
  made.better = Better::none;
  made.stale = cell.stale;
  made.trials = cell.trials;
  if (made.reason.empty()) made.reason = "nothing is published here";
  if (cell.difference) {
    made.kind = Cell::Kind::number;
    made.mean = cell.difference;
    made.sign_shown = true;
  } else if (cell.published_text && cell.kind == Cell::Kind::text) {
    made.kind = Cell::Kind::text;
    made.text = cell.text == *cell.published_text ? "=" : "≠";
  }
  return made;
}

void without_published(Cell& cell) {
  cell.published.reset();
  cell.published_text.reset();
  cell.difference.reset();
  cell.erratum.clear();
}

void show_in(Table& table, Show show) {
  for (std::vector<Cell>& row : table.cells) {
    for (Cell& cell : row) {
      if (show == Show::measured) without_published(cell);
      if (show == Show::published) cell = published_cell(cell);
      if (show == Show::difference) cell = difference_cell(cell);
    }
  }
  if (show == Show::measured) table.published_title.clear();
  if (show != Show::measured) table.against.clear();
  mark_best(table);
}

void show_in(Figure& figure, Show show) {
  if (show == Show::difference) return;  // points have no other to be subtracted from
  for (FigureSeries& series : figure.series) {
    if (show == Show::measured) series.published.clear();
    if (show == Show::published) series.points.clear();
  }
  for (HorizontalLine& line : figure.horizontal) {
    if (show == Show::measured) without_published(line.cell);
    if (show == Show::published) {
      Cell kept = nothing_measured(line.cell);
      kept.published = line.cell.published;
      kept.erratum = line.cell.erratum;
      line.cell = kept;
    }
  }
  if (show == Show::measured) figure.published_titles.clear();
}

}  // namespace

Report shown(Report report, Show show) {
  if (show == Show::both) return report;
  for (Section& section : report.sections) {
    std::visit([&](auto& part) { show_in(part, show); }, section);
  }
  return report;
}

}  // namespace petlab::reports
