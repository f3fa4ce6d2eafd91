#include "reports/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
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
      : definition_(definition), published_(published), known_(data.known_words) {
    collect_selected();
    std::set<std::string> fields;
    for (const Trial& trial : data.trials) {
      for (const auto& [field, value] : trial.fields) fields.insert(field);
      for (auto& [field, words] : present_) {
        const auto value = trial.fields.find(field);
        if (value != trial.fields.end()) words.insert(to_text(value->second));
      }
      if (selected_.contains("task")) {
        present_["task"].insert(trial.tasks.begin(), trial.tasks.end());
      }
    }
    for (const Score& score : data.scores) {
      for (const auto& [field, word] :
           {std::pair("task", &score.task), std::pair("split", &score.split),
            std::pair("name", &score.name)}) {
        if (const auto words = present_.find(field); words != present_.end())
          words->second.insert(*word);
      }
    }
    if (fields.empty()) return;
    fields.insert(data.other_fields.begin(), data.other_fields.end());
    fields.insert({"split", "step", "task", "name", "bls_percent"});
    fields_.assign(fields.begin(), fields.end());
  }

  void check() {
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
  }

  std::vector<std::string> problems() && { return std::move(problems_); }

  // What no trial has but may be meant.
  std::vector<std::string> notes() const {
    std::vector<std::string> notes;
    for (const auto& [field, words] : absent_) {
      notes.push_back(fmt::format("no trial here has {} {}", field, joined(words)));
    }
    return notes;
  }

 private:
  // The words that the definition selects by, and room for those that there are of each field.
  void collect_selected() {
    const auto collect = [this](const Selection& selection) {
      for (const Condition& condition : selection.conditions) {
        for (const results::Value& value : condition.any_of) {
          const auto* const word = std::get_if<std::string>(&value);
          if (word == nullptr) continue;
          selected_[condition.field].insert(*word);
          present_[condition.field];
        }
      }
    };
    const auto collect_parts = [&](const CellSpec& cells) {
      for (const Selection& part : cells.average_over) collect(part);
    };
    collect(definition_.where);
    collect_parts(definition_.table.cells);
    for (const std::vector<Line>* lines : {&definition_.table.rows, &definition_.table.columns}) {
      for (const Line& line : *lines) {
        collect(line.where);
        collect_parts(line.cells);
      }
    }
  }
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
    for (const Condition& condition : selection.conditions) {
      field(condition.field, condition.line);
      for (const results::Value& value : condition.any_of) {
        if (const auto* text = std::get_if<std::string>(&value)) {
          word(condition.field, *text, condition.line);
        }
      }
    }
  }
  void word(const std::string& field, const std::string& word, int line) {
    const std::set<std::string>& present = present_[field];
    if (present.contains(word)) return;
    if (const auto known = known_.find(field); known != known_.end()) {
      if (known->second.contains(word)) return;
      const std::vector<std::string> all(known->second.begin(), known->second.end());
      problem(line, fmt::format("{} is '{}', which neither petlab nor the database knows{} (known: "
                                "{})",
                                field, word, did_you_mean(word, all), joined(all)));
      return;
    }
    if (present.empty()) return;
    // What the report selects elsewhere is no other spelling of this word.
    std::vector<std::string> candidates;
    std::set_difference(present.begin(), present.end(), selected_[field].begin(),
                        selected_[field].end(), std::back_inserter(candidates));
    const std::string guess = did_you_mean(word, candidates);
    if (!guess.empty()) {
      problem(line, fmt::format("{} is '{}', which no trial has{}", field, word, guess));
      return;
    }
    std::vector<std::string>& absent = absent_[field];
    if (std::find(absent.begin(), absent.end(), word) == absent.end()) absent.push_back(word);
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
  using Words = std::map<std::string, std::set<std::string>>;  // by field
  const Words& known_;
  Words present_;   // of the trials and scores
  Words selected_;  // by the definition
  std::map<std::string, std::vector<std::string>> absent_;
  std::vector<std::string> fields_;  // sorted; empty: no trial that could tell
  std::vector<std::string> problems_;
};

std::vector<SweepProgress> progress_of(const Dataset& data,
                                       const std::vector<std::string>& sweeps) {
  std::vector<SweepProgress> all;
  std::map<std::string, std::size_t> places;
  for (const std::string& sweep : sweeps) {
    places.emplace(sweep, all.size());
    all.push_back({sweep, 0, {}});
  }
  std::set<std::pair<std::string, std::string>> seen;
  std::map<std::string, std::map<std::string, std::int64_t>> states;
  for (const Trial& trial : data.trials) {
    if (!seen.emplace(trial.sweep, trial.id).second) continue;
    const auto [place, is_new] = places.emplace(trial.sweep, all.size());
    if (is_new) all.push_back({trial.sweep, 0, {}});
    ++all[place->second].trials;
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
  NameCheck check(definition, data, published);
  check.check();
  return std::move(check).problems();
}

Table make_table(const Definition& definition, const Dataset& data, const Published& published) {
  NameCheck check(definition, data, published);
  check.check();
  const std::vector<std::string> absent = check.notes();
  if (std::vector<std::string> problems = std::move(check).problems(); !problems.empty()) {
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
  table.notes.insert(table.notes.end(), absent.begin(), absent.end());
  mark_best(table, spec.best_of_row);
  return table;
}

}  // namespace petlab::reports
