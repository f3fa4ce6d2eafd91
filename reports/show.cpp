#include "reports/show.h"

#include "reports/cell_text.h"

namespace petlab::reports {
namespace {

// A copy of the cell without its measured part.
Cell nothing_measured(const Cell& cell) {
  Cell result;
  result.digits = cell.digits;
  result.better = cell.better;
  result.measured.reason = cell.measured.reason;
  result.measured.spread = false;
  return result;
}

Cell published_cell(const Cell& cell) {
  Cell result = nothing_measured(cell);
  Measured& shown = result.measured;
  shown.reason = "nothing is published here";
  result.published.erratum = cell.published.erratum;
  if (cell.published.number) {
    shown.kind = Cell::Kind::number;
    shown.mean = cell.published.number;
  } else if (cell.published.text) {
    shown.kind = Cell::Kind::text;
    shown.text = *cell.published.text;
  }
  return result;
}

Cell difference_cell(const Cell& cell) {
  Cell result = nothing_measured(cell);
  result.better = Better::none;
  result.trials.stale = cell.trials.stale;
  result.trials.ids = cell.trials.ids;
  result.published.erratum = cell.published.erratum;
  Measured& shown = result.measured;
  if (shown.reason.empty()) shown.reason = "nothing is published here";
  if (const auto difference = cell.difference()) {
    shown.kind = Cell::Kind::number;
    shown.mean = difference;
    result.sign_shown = true;
  } else if (const std::string compared = difference_text(cell); !compared.empty()) {
    shown.kind = Cell::Kind::text;
    shown.text = compared;
  }
  return result;
}

void show_in(Table& table, Show show) {
  for (std::vector<Cell>& row : table.cells) {
    for (Cell& cell : row) {
      if (show == Show::measured) cell.published = {};
      if (show == Show::published) cell = published_cell(cell);
      if (show == Show::difference) cell = difference_cell(cell);
    }
  }
  if (show == Show::measured) table.published_title.clear();
  if (show != Show::measured) table.against.clear();
  mark_best(table);
}

void show_in(Figure& figure, Show show) {
  if (show == Show::difference) return;  // a point has no published counterpart to subtract
  for (FigureSeries& series : figure.series) {
    if (show == Show::measured) series.published.clear();
    if (show == Show::published) series.points.clear();
  }
  for (HorizontalLine& line : figure.horizontal) {
    if (show == Show::measured) line.cell.published = {};
    if (show == Show::published) {
      Cell kept = nothing_measured(line.cell);
      kept.published = line.cell.published;
      line.cell = kept;
    }
  }
  if (show == Show::measured) figure.published_titles.clear();
}

void show_in(Ranks& ranks, Show show) {
  if (show == Show::measured) return;
  ranks.ranking = {};
  ranks.ranking.missing = "ranks are of measured values, which this report does not show";
  ranks.notes.clear();
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
