#include "reports/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "reports/axis.h"
#include "reports/cell.h"
#include "reports/selection.h"
#include "reports/words.h"

namespace petlab::reports {
namespace {

// Finds the names of a definition that nothing answers to.
class NameCheck {
 public:
  NameCheck(const Definition& definition, const Dataset& data, const Published& published)
      : definition_(definition), published_(published) {
    std::set<std::string> fields;
    for (const Trial& trial : data.trials) {
      for (const auto& [field, value] : trial.fields) fields.insert(field);
    }
    if (fields.empty()) return;
    fields.insert(data.other_fields.begin(), data.other_fields.end());
    fields.insert({"split", "step", "task", "name", "bls_percent"});
    fields_.assign(fields.begin(), fields.end());
  }

  std::vector<std::string> problems() {
    selection(definition_.where);
    cells(definition_.table.cells);
    for (const std::vector<Line>* lines : {&definition_.table.rows, &definition_.table.columns}) {
      for (const Line& line : *lines) {
        selection(line.where);
        for (const std::string& name : line.each) field(name, line.line);
        cells(line.cells);
      }
    }
    published();
    return std::move(problems_);
  }

 private:
  void problem(int line, const std::string& what) {
    problems_.push_back(fmt::format("{}:{}: {}", definition_.file, line, what));
  }
  void field(const std::string& name, int line) {
    if (fields_.empty() || std::binary_search(fields_.begin(), fields_.end(), name)) return;
    problem(line, fmt::format("'{}' is no field of the results{} (petlab query \"SELECT * FROM "
                              "sweep_results LIMIT 1\" shows all)",
                              name, did_you_mean(name, fields_)));
  }
  void selection(const Selection& selection) {
    for (const Condition& condition : selection.conditions) field(condition.field, condition.line);
  }
  void cells(const CellSpec& spec) {
    if (spec.value) field(*spec.value, spec.line);
    if (spec.text) {
      for (const std::string& name : fields_in(*spec.text)) field(name, spec.line);
    }
    for (const Selection& part : spec.average_over) selection(part);
  }
  void published() {
    const TableSpec& table = definition_.table;
    if (table.published.empty()) return;
    const PublishedTable* known = published_.table(table.published);
    if (known == nullptr) {
      problem(table.published_line,
              fmt::format("published is '{}', which is no published table{} (known: {})",
                          table.published, did_you_mean(table.published, published_.tables()),
                          joined(published_.tables())));
      return;
    }
    keys(table.rows, known->rows, "row");
    keys(table.columns, known->columns, "column");
  }
  void keys(const std::vector<Line>& lines, const std::vector<std::string>& known,
            const std::string& axis) {
    for (const Line& line : lines) {
      if (!line.published || !line.each.empty()) continue;
      if (std::find(known.begin(), known.end(), *line.published) != known.end()) continue;
      problem(line.line, fmt::format("published is '{}', which is no {} of {}{} (known: {})",
                                     *line.published, axis, definition_.table.published,
                                     did_you_mean(*line.published, known), joined(known)));
    }
  }

  const Definition& definition_;
  const Published& published_;
  std::vector<std::string> fields_;  // sorted; empty: no trial that could tell
  std::vector<std::string> problems_;
};

std::vector<SweepProgress> progress_of(const Dataset& data,
                                       const std::vector<std::string>& sweeps) {
  std::vector<SweepProgress> all;
  for (const std::string& sweep : sweeps) all.push_back({sweep, 0, {}});
  std::set<std::pair<std::string, std::string>> seen;
  std::map<std::string, std::map<std::string, std::int64_t>> states;
  for (const Trial& trial : data.trials) {
    if (!seen.emplace(trial.sweep, trial.id).second) continue;
    auto place = std::find_if(all.begin(), all.end(), [&](const SweepProgress& progress) {
      return progress.sweep == trial.sweep;
    });
    if (place == all.end()) place = all.insert(all.end(), {trial.sweep, 0, {}});
    ++place->trials;
    ++states[trial.sweep][trial.state];
  }
  for (SweepProgress& progress : all) {
    const auto& counts = states[progress.sweep];
    progress.states.assign(counts.begin(), counts.end());
  }
  return all;
}

void mark_best(const std::vector<Cell*>& cells) {
  std::vector<Cell*> candidates;
  for (Cell* cell : cells) {
    // A mean over fewer seeds is not yet better than one over all.
    if (cell->kind == Cell::Kind::number && cell->better != Better::none && !cell->partial()) {
      candidates.push_back(cell);
    }
  }
  if (candidates.size() < 2) return;
  const auto goodness = [](const Cell* cell) {
    return cell->better == Better::higher ? *cell->mean : -*cell->mean;
  };
  double best = goodness(candidates.front());
  for (const Cell* cell : candidates) best = std::max(best, goodness(cell));
  for (Cell* cell : candidates) cell->best = goodness(cell) == best;
}

void mark_best(Table& table, bool of_row) {
  std::vector<std::vector<Cell*>> lines(of_row ? table.rows.size() : table.columns.size());
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    for (std::size_t column = 0; column < table.columns.size(); ++column) {
      lines[of_row ? row : column].push_back(&table.cells[row][column]);
    }
  }
  for (const std::vector<Cell*>& line : lines) mark_best(line);
}

void add_published(Cell& cell, const PublishedValue& value) {
  cell.erratum = value.erratum;
  if (const auto* text = std::get_if<std::string>(&value.value)) {
    cell.published_text = *text;
    return;
  }
  cell.published = std::get<double>(value.value);
  if (cell.kind == Cell::Kind::number) cell.difference = *cell.mean - *cell.published;
}

}  // namespace

std::int64_t Cell::undefined() const {
  return std::count_if(samples.begin(), samples.end(),
                       [](const Sample& sample) { return !sample.value; });
}

std::vector<std::string> unknown_names(const Definition& definition, const Dataset& data,
                                       const Published& published) {
  return NameCheck(definition, data, published).problems();
}

Table make_table(const Definition& definition, const Dataset& data, const Published& published) {
  if (std::vector<std::string> problems = unknown_names(definition, data, published);
      !problems.empty()) {
    throw DefinitionError(std::move(problems));
  }
  Table table;
  table.name = definition.name;
  table.about = definition.about;
  table.progress = progress_of(data, definition.sweeps);
  table.notes = definition.notes;
  const TableSpec& spec = definition.table;
  const PublishedTable* printed = published.table(spec.published);
  if (printed != nullptr) {
    table.published_title = published.source() + ", " + spec.published + ": " + printed->title;
  }

  std::vector<std::size_t> trials;
  for (std::size_t index = 0; index < data.trials.size(); ++index) {
    if (matches(definition.where, data.trials[index])) trials.push_back(index);
  }
  const std::vector<AxisLine> columns = expand(spec.columns, data, trials, definition.where);
  const std::vector<AxisLine> rows =
      separated(expand(spec.rows, data, trials, definition.where), columns, data);
  for (const AxisLine& column : columns) {
    table.columns.push_back({column.key, column.group, column.name});
  }

  CellMaker maker(definition, data);
  for (const AxisLine& row : rows) {
    table.rows.push_back({row.key, row.group, row.name});
    std::vector<Cell>& cells = table.cells.emplace_back();
    for (const AxisLine& column : columns) {
      Cell& cell = cells.emplace_back(maker.cell(row, column));
      const PublishedValue* value = published.find(spec.published, row.published, column.published);
      if (value != nullptr) add_published(cell, *value);
    }
  }
  if (!maker.problems().empty()) throw DefinitionError(maker.problems());
  table.notes.insert(table.notes.end(), maker.notes().begin(), maker.notes().end());
  mark_best(table, spec.best_of_row);
  return table;
}

}  // namespace petlab::reports
