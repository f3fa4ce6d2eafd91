#include "reports/table.h"

#include <algorithm>
#include <optional>
#include <string>

#include "metrics/paired_comparison.h"
#include "reports/axis.h"
#include "reports/cell.h"

namespace petlab::reports {
namespace {

// The cells of each column, or of each row if best_of_row.
std::vector<std::vector<Cell*>> cells_by_line(Table& table) {
  const bool of_row = table.best_of_row;
  std::vector<std::vector<Cell*>> lines(of_row ? table.rows.size() : table.columns.size());
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    for (std::size_t column = 0; column < table.columns.size(); ++column) {
      lines[of_row ? row : column].push_back(&table.cells[row][column]);
    }
  }
  return lines;
}

void mark_best(const std::vector<Cell*>& cells) {
  std::vector<Cell*> candidates;
  for (Cell* cell : cells) {
    cell->standing.best = false;
    cell->standing.second = false;
    // Means over only some of the seeds do not compete with complete ones.
    const Measured& measured = cell->measured;
    if (measured.is_number() && cell->better != Better::none && !measured.partial()) {
      candidates.push_back(cell);
    }
  }
  if (candidates.size() < 2) return;
  const auto goodness = [](const Cell* cell) {
    return cell->better == Better::higher ? *cell->measured.mean : -*cell->measured.mean;
  };
  double best = goodness(candidates.front());
  for (const Cell* cell : candidates) best = std::max(best, goodness(cell));
  std::optional<double> second;
  for (Cell* cell : candidates) {
    cell->standing.best = goodness(cell) == best;
    if (!cell->standing.best) second = std::max(second.value_or(goodness(cell)), goodness(cell));
  }
  // Of only two, the second best would be the last.
  if (candidates.size() < 3) return;
  for (Cell* cell : candidates) cell->standing.second = second && goodness(cell) == *second;
}

// Values by seed; empty if a seed has several, and for values that are not scores.
std::optional<metrics::ScoresByPair> by_seed(const Measured& measured) {
  metrics::ScoresByPair values;
  if (!measured.spread) return std::nullopt;
  for (const Sample& sample : measured.samples) {
    if (!values.emplace(std::to_string(sample.seed), sample.value).second) return std::nullopt;
  }
  return values;
}

void compare(const std::vector<Cell*>& cells, std::size_t against) {
  const auto base = by_seed(cells[against]->measured);
  if (!base) return;
  for (std::size_t at = 0; at < cells.size(); ++at) {
    if (at == against) continue;
    const auto other = by_seed(cells[at]->measured);
    if (!other) continue;
    const metrics::PairedComparison comparison = metrics::compare(*base, *other);
    if (comparison.p) cells[at]->standing.comparison = comparison;
  }
}

void compare_all(Table& table, const std::string& against) {
  const std::vector<Head>& heads = table.best_of_row ? table.columns : table.rows;
  const auto named = std::find_if(heads.begin(), heads.end(),
                                  [&](const Head& head) { return head.key == against; });
  if (named == heads.end()) return;
  table.against = named->name;
  for (const std::vector<Cell*>& line : cells_by_line(table)) {
    compare(line, static_cast<std::size_t>(named - heads.begin()));
  }
  std::vector<metrics::PairedComparison*> family;
  for (std::vector<Cell>& row : table.cells) {
    for (Cell& cell : row) {
      if (cell.standing.comparison) family.push_back(&*cell.standing.comparison);
    }
  }
  metrics::adjust(family);
}

InPaper in_paper(const PublishedValue& value) {
  InPaper result;
  result.erratum = value.erratum;
  if (const auto* text = std::get_if<std::string>(&value.value)) {
    result.text = *text;
  } else {
    result.number = std::get<double>(value.value);
  }
  return result;
}

// Divides a column's means by the mean of row `to`, and published values by that row's published
// value. Spreads are dropped: those of a quotient of means cannot be derived from them.
void make_relative(Table& table, std::size_t column, const std::string& to) {
  const auto row = std::find_if(table.rows.begin(), table.rows.end(),
                                [&](const Head& head) { return head.key == to; });
  const Cell base = row == table.rows.end()
                        ? Cell()
                        : table.cells[static_cast<std::size_t>(row - table.rows.begin())][column];
  const double unit = base.measured.is_number() ? *base.measured.mean : 0;
  for (std::vector<Cell>& cells : table.cells) {
    std::optional<double>& published = cells[column].published.number;
    if (published && base.published.number.value_or(0) != 0) {
      *published /= *base.published.number;
    } else {
      published.reset();
    }
    Measured& measured = cells[column].measured;
    if (measured.is_number() && unit != 0) {
      measured.mean = *measured.mean / unit;
      measured.deviation = measured.standard_error = std::nullopt;
      measured.ci_low = measured.ci_high = std::nullopt;
      measured.spread = false;
    } else if (measured.is_number()) {
      measured.kind = Measured::Kind::missing;
      measured.reason = "no value of " + (row == table.rows.end() ? to : row->name) +
                        ", to which it would be relative";
    }
  }
}

}  // namespace

std::int64_t Measured::undefined() const {
  return std::count_if(samples.begin(), samples.end(),
                       [](const Sample& sample) { return !sample.value; });
}

std::optional<double> Cell::difference() const {
  if (!measured.is_number() || !published.number) return std::nullopt;
  return *measured.mean - *published.number;
}

Table make_table(const TableSpec& spec, const Ingredients& from, CellMaker& maker) {
  Table table;
  table.key = spec.key;
  table.title = spec.title;
  if (const PublishedTable* printed = from.published.table(spec.published)) {
    table.published_title = from.published.source() + ", " + spec.published + ": " + printed->title;
  }
  const Selection& where = from.definition.where;
  const std::vector<AxisLine> columns = expand(spec.columns, from.data, from.trials, where);
  const std::vector<AxisLine> rows =
      separated(expand(spec.rows, from.data, from.trials, where), columns, from.data);
  for (const AxisLine& column : columns) {
    table.columns.push_back({column.key, column.group, column.name});
  }
  for (const AxisLine& row : rows) {
    table.rows.push_back({row.key, row.group, row.name});
    std::vector<Cell>& cells = table.cells.emplace_back();
    for (const AxisLine& column : columns) {
      Cell& cell = cells.emplace_back(maker.cell(row, column, spec.cells, spec.column_first));
      cell.errors = spec.errors;
      const PublishedValue* value =
          from.published.find(spec.published, row.published, column.published);
      if (value != nullptr) cell.published = in_paper(*value);
    }
  }
  for (std::size_t column = 0; column < columns.size(); ++column) {
    const std::string& to = columns[column].line->relative_to;
    if (!to.empty()) make_relative(table, column, to);
  }
  table.errors = spec.errors;
  table.best_of_row = spec.best_of_row;
  mark_best(table);
  if (!spec.against.empty()) compare_all(table, spec.against);
  return table;
}

void mark_best(Table& table) {
  for (const std::vector<Cell*>& line : cells_by_line(table)) mark_best(line);
}

}  // namespace petlab::reports
