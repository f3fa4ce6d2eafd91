#include "reports/names.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "reports/derived.h"
#include "reports/selection.h"
#include "reports/words.h"

namespace petlab::reports {
namespace {

// Calls selection, cells and line for the parts of a section.
template <typename OfSelection, typename OfCells, typename OfLine>
void each_part(const SectionSpec& section, OfSelection selection, OfCells cells, OfLine of_line) {
  const auto line = [&](const Line& one) {
    selection(one.where);
    of_line(one);
    cells(one.cells);
  };
  if (const auto* table = std::get_if<TableSpec>(&section)) {
    cells(table->cells);
    for (const Line& row : table->rows) line(row);
    for (const Line& column : table->columns) line(column);
    return;
  }
  if (const auto* ranks = std::get_if<RanksSpec>(&section)) {
    for (const Line& variant : ranks->variants) line(variant);
    for (const Line& task : ranks->tasks) line(task);
    return;
  }
  const auto& figure = std::get<FigureSpec>(section);
  cells(figure.x.cells);
  selection(figure.y.where);
  cells(figure.y.cells);
  for (const SeriesSpec& series : figure.series) line(series.line);
  for (const SeriesSpec& series : figure.horizontal) line(series.line);
}

// Calls `take` for each condition of the definition.
template <typename Take>
void each_condition(const Definition& definition, Take take) {
  const auto of_selection = [&](const Selection& selection) {
    std::for_each(selection.conditions.begin(), selection.conditions.end(), take);
  };
  of_selection(definition.where);
  for (const SectionSpec& section : definition.sections) {
    each_part(
        section, of_selection,
        [&](const CellSpec& cells) {
          std::for_each(cells.average_over.begin(), cells.average_over.end(), of_selection);
        },
        [](const Line&) {});
  }
}

// Finds names in a definition that neither the data nor the published numbers have.
class NameCheck {
 public:
  NameCheck(const Definition& definition, const Dataset& data, const Published& published)
      : definition_(definition), published_(published), known_(data.known_words) {
    for (const std::string& field : fields_of(definition)) {
      if (!data.trials.empty() && field.starts_with("user.") &&
          !data.configuration.contains(field)) {
        absent_[field];
      }
    }
    collect_selected();
    for (const Trial& trial : data.trials) {
      for (auto& [field, words] : present_) {
        if (field == "tag") continue;  // trials may have several tags
        const results::Value& value = field_of(trial, field);
        if (!std::holds_alternative<std::monostate>(value)) words.insert(to_text(value));
      }
      for (const auto& [field, values] : {std::pair("task", &trial.tasks), {"tag", &trial.tags}}) {
        if (selected_.contains(field)) present_[field].insert(values->begin(), values->end());
      }
    }
    const Series* last = nullptr;
    for (const Score& score : data.scores) {
      if (score.series.get() == last) continue;
      last = score.series.get();
      for (const auto& [field, word] :
           {std::pair("task", &last->task), std::pair("split", &last->split),
            std::pair("name", &last->name)}) {
        if (const auto words = present_.find(field); words != present_.end())
          words->second.insert(*word);
      }
    }
  }

  void check() {
    selection(definition_.where);
    for (const SectionSpec& section : definition_.sections) {
      each_part(
          section, [this](const Selection& where) { selection(where); },
          [this](const CellSpec& spec) {
            for (const Selection& part : spec.average_over) selection(part);
          },
          [](const Line&) {});
      std::visit([this](const auto& spec) { published(spec); }, section);
      if (const auto* figure = std::get_if<FigureSpec>(&section)) x_axis(figure->x);
    }
  }

  std::vector<std::string> problems() && { return std::move(problems_); }

  // Absent words that may still be intended.
  std::vector<std::string> notes() const {
    std::vector<std::string> notes;
    for (const auto& [field, words] : absent_) {
      if (field == "sweep") continue;  // its progress shows this
      notes.push_back(
          fmt::format("no trial here has {}{}{}", field, words.empty() ? "" : " ", joined(words)));
    }
    return notes;
  }

 private:
  // Collects the words the definition selects by, and prepares their fields in present_.
  void collect_selected() {
    each_condition(definition_, [this](const Condition& condition) {
      for (const results::Value& value : condition.values) {
        const auto* const word = std::get_if<std::string>(&value);
        if (word == nullptr) continue;
        selected_[condition.word.name].insert(*word);
        present_[condition.word.name];
      }
    });
  }
  void problem(int line, const std::string& what) {
    problems_.push_back(fmt::format("{}:{}: {}", definition_.file, line, what));
  }
  void selection(const Selection& selection) {
    for (const Condition& condition : selection.conditions) {
      if (condition.op != Condition::Op::equal) continue;
      const results::Value* before = nullptr;
      for (const results::Value& value : condition.values) {
        // A number is followed by the same word as text.
        const bool is_number = before != nullptr && number_in(*before);
        const auto* text = std::get_if<std::string>(&value);
        if (text != nullptr && !is_number) word(condition.word.name, *text, condition.line);
        before = &value;
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
    // A word that the report selects elsewhere is not a misspelling of this one.
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
  void x_axis(const FigureAxis& axis) {
    if (axis.cells.value != kExamples) return;
    problem(axis.line,
            "figure.x.value is 'examples', which trials have of each task and split, must be a "
            "field of the trials, or step; cells of tables and figure.y can show it");
  }
  const PublishedTable* published_table(const std::string& name, int line) {
    const PublishedTable* known = published_.table(name);
    if (known == nullptr) {
      problem(line,
              fmt::format("published is '{}', which is no published table{} (known: {})", name,
                          did_you_mean(name, published_.tables()), joined(published_.tables())));
    }
    return known;
  }
  void published(const TableSpec& table) {
    if (table.published.empty()) return;
    const PublishedTable* known = published_table(table.published, table.published_line);
    if (known == nullptr) return;
    keys(table.rows, known->rows, "row", table.published);
    keys(table.columns, known->columns, "column", table.published);
  }
  void published(const FigureSpec& figure) {
    for (const std::vector<SeriesSpec>* all : {&figure.series, &figure.horizontal}) {
      for (const SeriesSpec& series : *all) {
        for (const PublishedPoints& points : series.published) published(points);
      }
    }
  }
  void published(const RanksSpec&) {}  // published numbers have no seeds
  void published(const PublishedPoints& points) {
    const PublishedTable* known = published_table(points.table, points.line);
    if (known == nullptr) return;
    if (!points.row.empty()) key(points.row, known->rows, "row", points.table, points.line);
    if (!points.rows.empty() &&
        std::none_of(known->rows.begin(), known->rows.end(),
                     [&](const std::string& row) { return row.starts_with(points.rows); })) {
      problem(points.line, fmt::format("published.rows is '{}', with which no row of {} begins "
                                       "(known: {})",
                                       points.rows, points.table, joined(known->rows)));
    }
    if (const auto* column = std::get_if<std::string>(&points.x); column && !column->empty()) {
      key(*column, known->columns, "column", points.table, points.line);
    }
    key(points.y, known->columns, "column", points.table, points.line);
  }
  void keys(const std::vector<Line>& lines, const std::vector<std::string>& known,
            const std::string& axis, const std::string& table) {
    for (const Line& line : lines) {
      if (line.published && line.each.empty()) key(*line.published, known, axis, table, line.line);
    }
  }
  void key(const std::string& wanted, const std::vector<std::string>& known,
           const std::string& axis, const std::string& table, int line) {
    if (std::find(known.begin(), known.end(), wanted) != known.end()) return;
    problem(line, fmt::format("published is '{}', which is no {} of {}{} (known: {})", wanted, axis,
                              table, did_you_mean(wanted, known), joined(known)));
  }

  const Definition& definition_;
  const Published& published_;
  using Words = std::map<std::string, std::set<std::string>>;  // by field
  const Words& known_;
  Words present_;   // of the trials and scores
  Words selected_;  // by the definition
  std::map<std::string, std::vector<std::string>> absent_;
  std::vector<std::string> problems_;
};

}  // namespace

std::set<std::string> fields_of(const Definition& definition) {
  std::set<std::string> fields;
  each_condition(definition,
                 [&](const Condition& condition) { fields.insert(condition.word.name); });
  for (const SectionSpec& section : definition.sections) {
    each_part(
        section, [](const Selection&) {},
        [&](const CellSpec& cells) {
          if (cells.value) fields.insert(*cells.value);
          if (!cells.text) return;
          for (std::string& field : fields_in(*cells.text)) fields.insert(std::move(field));
        },
        [&](const Line& line) { fields.insert(line.each.begin(), line.each.end()); });
  }
  return fields;
}

bool selects(const Definition& definition, const std::string& field, const std::string& word) {
  bool found = false;
  each_condition(definition, [&](const Condition& condition) {
    found = found || (condition.word.name == field && results::holds(condition, word) &&
                      condition.op == Condition::Op::equal);
  });
  return found;
}

CheckedNames check_names(const Definition& definition, const Dataset& data,
                         const Published& published) {
  NameCheck check(definition, data, published);
  check.check();
  std::vector<std::string> notes = check.notes();
  return {std::move(check).problems(), std::move(notes)};
}

}  // namespace petlab::reports
