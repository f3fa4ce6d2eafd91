#include "reports/wanted.h"

#include <algorithm>

#include "reports/derived.h"
#include "reports/selection.h"

namespace petlab::reports {
namespace {

bool is_of_steps(const Selection& selection) {
  return std::any_of(selection.conditions.begin(), selection.conditions.end(),
                     [](const Condition& condition) { return condition.word.name == "step"; });
}

bool is_of_steps(const CellSpec& cells) {
  return cells.value == "step" ||
         std::any_of(cells.average_over.begin(), cells.average_over.end(),
                     [](const Selection& part) { return is_of_steps(part); });
}

bool is_of_steps(const Line& line) {
  return is_of_steps(line.where) || is_of_steps(line.cells) ||
         std::find(line.each.begin(), line.each.end(), "step") != line.each.end();
}

bool is_of_steps(const std::vector<Line>& lines) {
  return std::any_of(lines.begin(), lines.end(),
                     [](const Line& line) { return is_of_steps(line); });
}

bool is_of_steps(const std::vector<SeriesSpec>& all) {
  return std::any_of(all.begin(), all.end(),
                     [](const SeriesSpec& series) { return is_of_steps(series.line); });
}

bool is_of_steps(const TableSpec& table) {
  return is_of_steps(table.cells) || is_of_steps(table.rows) || is_of_steps(table.columns);
}

bool is_of_steps(const FigureSpec& figure) {
  return is_of_steps(figure.x.cells) || is_of_steps(figure.y.cells) ||
         is_of_steps(figure.y.where) || is_of_steps(figure.series) ||
         is_of_steps(figure.horizontal);
}

bool is_of_steps(const Definition& definition) {
  return is_of_steps(definition.where) ||
         std::any_of(definition.sections.begin(), definition.sections.end(),
                     [](const SectionSpec& section) {
                       return std::visit([](const auto& spec) { return is_of_steps(spec); },
                                         section);
                     });
}

bool shows_examples(const CellSpec& cells) { return cells.value == kExamples; }

bool shows_examples(const TableSpec& table) {
  const auto shows = [](const Line& line) { return shows_examples(line.cells); };
  return shows_examples(table.cells) || std::any_of(table.rows.begin(), table.rows.end(), shows) ||
         std::any_of(table.columns.begin(), table.columns.end(), shows);
}

bool shows_examples(const FigureSpec& figure) {
  const auto shows = [](const SeriesSpec& series) { return shows_examples(series.line.cells); };
  return shows_examples(figure.y.cells) ||
         std::any_of(figure.series.begin(), figure.series.end(), shows) ||
         std::any_of(figure.horizontal.begin(), figure.horizontal.end(), shows);
}

bool shows_examples(const Definition& definition) {
  return std::any_of(
      definition.sections.begin(), definition.sections.end(), [](const SectionSpec& section) {
        return std::visit([](const auto& spec) { return shows_examples(spec); }, section);
      });
}

// Whether no cell shows a metric, whichever of its row, its column and the table decides.
bool shows_no_metric(const TableSpec& table) {
  const auto averages = [](const Line& line) { return !line.cells.average_over.empty(); };
  const auto tells = [](const Line& line) { return line.cells.value || line.cells.text; };
  if (!table.cells.average_over.empty() ||
      std::any_of(table.rows.begin(), table.rows.end(), averages) ||
      std::any_of(table.columns.begin(), table.columns.end(), averages)) {
    return false;
  }
  return table.cells.value || table.cells.text ||
         std::all_of(table.rows.begin(), table.rows.end(), tells) ||
         std::all_of(table.columns.begin(), table.columns.end(), tells);
}

// An average is over its parts alone; what else a cell shows may be decided on the other axis.
bool may_show(const CellSpec& cells, const Series& series) {
  return cells.average_over.empty() ||
         std::any_of(cells.average_over.begin(), cells.average_over.end(),
                     [&](const Selection& part) { return matches(part, series); });
}

// Such a line is there for each metric that it selects, whatever the other axis shows of it.
bool comes_of(const Line& line, const Series& series) {
  return std::any_of(line.each.begin(), line.each.end(), is_score_field) &&
         matches(line.where, series);
}

bool may_show(const TableSpec& table, const Series& series) {
  const auto selects = [&](const Line& line) { return matches(line.where, series); };
  const auto comes = [&](const Line& line) { return comes_of(line, series); };
  const auto averages = [](const Line& line) { return !line.cells.average_over.empty(); };
  if (std::any_of(table.rows.begin(), table.rows.end(), comes) ||
      std::any_of(table.columns.begin(), table.columns.end(), comes)) {
    return true;
  }
  if (shows_no_metric(table)) return false;
  // Where both axes and the table may say what a cell shows, one of them decides.
  const bool only_columns = table.cells.average_over.empty() &&
                            std::none_of(table.rows.begin(), table.rows.end(), averages);
  return std::any_of(table.rows.begin(), table.rows.end(), selects) &&
         std::any_of(table.columns.begin(), table.columns.end(), [&](const Line& column) {
           return selects(column) && (!only_columns || may_show(column.cells, series));
         });
}

bool may_show(const FigureSpec& figure, const Series& series) {
  const auto selects = [&](const SeriesSpec& one) { return matches(one.line.where, series); };
  return matches(figure.y.where, series) && may_show(figure.y.cells, series) &&
         (std::any_of(figure.series.begin(), figure.series.end(), selects) ||
          std::any_of(figure.horizontal.begin(), figure.horizontal.end(), selects));
}

bool may_show(const Definition& definition, const Series& series) {
  return matches(definition.where, series) &&
         std::any_of(definition.sections.begin(), definition.sections.end(),
                     [&](const SectionSpec& section) {
                       return std::visit([&](const auto& spec) { return may_show(spec, series); },
                                         section);
                     });
}

// What a worker measured is not known before it is read.
bool may_show(const Selection& where, const Trial& trial) {
  return matches(where, trial) || std::any_of(where.conditions.begin(), where.conditions.end(),
                                              [](const Condition& condition) {
                                                return condition.word.name == "bls_bits" ||
                                                       condition.word.name == "stored_bits";
                                              });
}

}  // namespace

Wanted wanted_by(std::span<const Definition> definitions) {
  const auto any = [definitions](const auto& holds) {
    return std::any_of(definitions.begin(), definitions.end(), holds);
  };
  Wanted wanted;
  wanted.every_step = any([](const Definition& one) { return is_of_steps(one); });
  wanted.examples = any([](const Definition& one) { return shows_examples(one); });
  wanted.series = [any](const Series& series) {
    return any([&](const Definition& one) { return may_show(one, series); });
  };
  wanted.trial = [any](const Trial& trial) {
    return any([&](const Definition& one) { return may_show(one.where, trial); });
  };
  return wanted;
}

Wanted wanted_by(const Selection& where, bool every_step) {
  Wanted wanted;
  wanted.series = [&where](const Series& series) { return matches(where, series); };
  wanted.trial = [&where](const Trial& trial) { return may_show(where, trial); };
  wanted.every_step = every_step;
  return wanted;
}

}  // namespace petlab::reports
