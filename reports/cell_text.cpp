#include "reports/cell_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "reports/text.h"

namespace petlab::reports {
namespace {

bool any_cell(const Table& table, const std::function<bool(const Cell&)>& holds) {
  return std::any_of(table.cells.begin(), table.cells.end(), [&](const std::vector<Cell>& row) {
    return std::any_of(row.begin(), row.end(), holds);
  });
}

std::string mixed_fields_of(const Table& table) {
  std::set<std::string> fields;
  for (const std::vector<Cell>& row : table.cells) {
    for (const Cell& cell : row) {
      const std::vector<std::string>& mixed = cell.trials.mixed_fields;
      fields.insert(mixed.begin(), mixed.end());
    }
  }
  return fmt::format("{}", fmt::join(fields, ", "));
}

std::string spread_text(const Cell& cell) {
  const Measured& measured = cell.measured;
  const auto half = [&](const std::optional<double>& width) {
    return width ? " ± " + number_text(*width, cell.digits) : std::string();
  };
  switch (cell.errors) {
    case Spread::deviation:
      return half(measured.deviation);
    case Spread::standard_error:
      return half(measured.standard_error);
    case Spread::interval:
      if (!measured.ci_low || !measured.ci_high) return {};
      return fmt::format(" [{}, {}]", number_text(*measured.ci_low, cell.digits),
                         number_text(*measured.ci_high, cell.digits));
    case Spread::none:
      break;
  }
  return {};
}

// Describes the test for `*` and its number of seeds.
std::string comparison_text(const Table& table) {
  std::set<std::int64_t> counts;
  for (const std::vector<Cell>& row : table.cells) {
    for (const Cell& cell : row) {
      if (cell.standing.comparison) counts.insert(cell.standing.comparison->pairs);
    }
  }
  if (counts.empty()) {
    return fmt::format("* against {}: no test, which needs {} seeds with a defined value in both",
                       printable(table.against), metrics::kFewestPairs);
  }
  return fmt::format(
      "* differs from {}: two-sided paired t test over n = {} seeds, Holm's correction over all "
      "tests of the table, p < {}",
      printable(table.against), fmt::join(counts, ", "), kSignificance);
}

// Letters for a number: a, b, … z, aa, …
std::string letters(std::size_t number) {
  std::string result;
  for (++number; number > 0; number = (number - 1) / 26) {
    result.insert(result.begin(), static_cast<char>('a' + (number - 1) % 26));
  }
  return result;
}

// Uses Unicode's modifier letters, which lack a small q.
std::string raised(const std::string& letters) {
  static constexpr const char* kRaised[] = {"ᵃ", "ᵇ", "ᶜ", "ᵈ", "ᵉ", "ᶠ", "ᵍ", "ʰ", "ⁱ",
                                            "ʲ", "ᵏ", "ˡ", "ᵐ", "ⁿ", "ᵒ", "ᵖ", "q", "ʳ",
                                            "ˢ", "ᵗ", "ᵘ", "ᵛ", "ʷ", "ˣ", "ʸ", "ᶻ"};
  std::string result;
  for (const char letter : letters) result += kRaised[letter - 'a'];
  return result;
}

// True if a text such as "204k" or "0.5k" is the rounded number; absent for other texts.
std::optional<bool> rounds_to(double number, const std::string& text) {
  const std::size_t point = text.find('.');
  const std::size_t digits = text.find_first_not_of("0123456789");
  if (text.size() < 2 || text.back() != 'k' || digits != std::min(point, text.size() - 1) ||
      text.find_first_not_of("0123456789", digits + 1) < text.size() - 1) {
    return std::nullopt;
  }
  const std::size_t decimals = point == std::string::npos ? 0 : text.size() - point - 2;
  return fmt::format("{:.{}f}k", number / 1000, decimals) == text;
}

}  // namespace

CellText cell_text(const Cell& cell) {
  CellText text;
  const Measured& measured = cell.measured;
  switch (measured.kind) {
    case Cell::Kind::missing:
      return {"—", "", "", true};
    case Cell::Kind::text:
      return {printable(measured.text), "", "", false};
    case Cell::Kind::undefined:
      text.aligned = false;
      text.value = "undefined";
      if (measured.undefined() < measured.n()) {
        text.rest = fmt::format(" ({} of {})", measured.undefined(), measured.n());
      }
      break;
    case Cell::Kind::number:
      text.value = cell.sign_shown ? difference_text(*measured.mean, cell.digits)
                                   : number_text(*measured.mean, cell.digits);
      if (!measured.spread) break;
      text.rest = spread_text(cell);
      text.rest += measured.partial() ? fmt::format(" ({}/{})", measured.n(), measured.planned)
                                      : fmt::format(" ({})", measured.n());
      break;
  }
  if (cell.trials.stale) text.marks += "†";
  if (cell.trials.numerics.size() > 1) text.marks += "‡";
  if (!cell.trials.mixed_code.empty()) text.marks += "¶";
  if (!cell.trials.mixed_fields.empty()) text.marks += "§";
  if (cell.standing.differs()) text.marks += "*";
  return text;
}

std::string published_text(const Cell& cell) {
  if (cell.published.number) {
    // A measured text has no decimals to match.
    return cell.measured.kind == Cell::Kind::text
               ? exact_text(*cell.published.number)
               : number_text(*cell.published.number, cell.digits);
  }
  if (cell.published.text) return printable(*cell.published.text);
  return "—";
}

std::string difference_text(const Cell& cell) {
  if (const auto difference = cell.difference()) return difference_text(*difference, cell.digits);
  if (cell.published.text && cell.measured.kind == Cell::Kind::text) {
    return cell.measured.text == *cell.published.text ? "=" : "≠";
  }
  if (cell.published.text && cell.measured.is_number()) {
    const auto rounds = rounds_to(*cell.measured.mean, *cell.published.text);
    if (rounds) return *rounds ? "=" : "≠";
  }
  return "";
}

Errata::Errata(const Table& table) {
  for (const std::vector<Cell>& row : table.cells) {
    for (const Cell& cell : row) {
      const std::string& text = cell.published.erratum;
      if (!text.empty() && std::find(texts_.begin(), texts_.end(), text) == texts_.end()) {
        texts_.push_back(text);
      }
    }
  }
}

std::string Errata::letter(const Cell& cell) const {
  const std::string& text = cell.published.erratum;
  if (text.empty()) return {};
  return letters(
      static_cast<std::size_t>(std::find(texts_.begin(), texts_.end(), text) - texts_.begin()));
}

std::string Errata::mark(const Cell& cell) const { return raised(letter(cell)); }

std::vector<std::string> Errata::lines() const {
  std::vector<std::string> result;
  for (const auto& [letter, text] : all()) {
    result.push_back(raised(letter) + " erratum of the published value: " + printable(text));
  }
  return result;
}

std::vector<std::pair<std::string, std::string>> Errata::all() const {
  std::vector<std::pair<std::string, std::string>> result;
  for (std::size_t i = 0; i < texts_.size(); ++i) result.emplace_back(letters(i), texts_[i]);
  return result;
}

std::string progress_text(const SweepProgress& progress) {
  if (progress.trials == 0) {
    return fmt::format("sweep {}: no trial of it here yet", printable(progress.sweep));
  }
  std::int64_t done = 0;
  std::string others;
  for (const auto& [state, count] : progress.states) {
    if (has_result(state)) {
      done += count;
    } else {
      others += (others.empty() ? "" : ", ") + fmt::format("{} {}", count, state);
    }
  }
  return fmt::format("sweep {}: {} of {} trials done{}", printable(progress.sweep), done,
                     progress.trials, others.empty() ? "" : " (" + others + ")");
}

std::vector<std::string> legend(const Table& table) {
  std::vector<std::string> lines;
  if (any_cell(table, [](const Cell& cell) {
        return cell.measured.is_number() && cell.measured.spread;
      })) {
    static constexpr const char* kShown[] = {
        "mean ± sample deviation (n seeds)", "mean ± standard error (n seeds)",
        "mean [95 % interval, Student's t] (n seeds)", "mean (n seeds)"};
    lines.emplace_back(kShown[static_cast<int>(table.errors)]);
  }
  if (any_cell(table, [](const Cell& cell) {
        return cell.measured.is_number() && cell.measured.spread && cell.measured.partial();
      })) {
    lines.emplace_back("(1/2) partial: 1 of the 2 planned seeds has a value");
  }
  if (any_cell(table, [](const Cell& cell) { return cell.measured.kind == Cell::Kind::missing; })) {
    lines.emplace_back("— no value yet");
  }
  if (any_cell(table, [](const Cell& cell) { return cell.trials.stopped_early; })) {
    lines.emplace_back("trials that stopped early have no value");
  }
  if (any_cell(table,
               [](const Cell& cell) { return cell.measured.kind == Cell::Kind::undefined; })) {
    lines.emplace_back("undefined: the metric has no value for the predictions of a seed");
  }
  if (any_cell(table, [](const Cell& cell) { return cell.trials.stale; })) {
    lines.emplace_back("† stale: numerics or data changed since (petlab run --rerun stale)");
  }
  if (any_cell(table, [](const Cell& cell) { return cell.trials.numerics.size() > 1; })) {
    lines.emplace_back(
        "‡ mixed numerics: its trials ran under numerics that are not bit-identical");
  }
  if (any_cell(table, [](const Cell& cell) { return !cell.trials.mixed_code.empty(); })) {
    lines.emplace_back(
        "¶ mixed code: its trials ran different scripts, libraries or changes (petlab diff)");
  }
  if (const std::string fields = mixed_fields_of(table); !fields.empty()) {
    lines.push_back("§ mixed configurations: its trials differ in more than the seed (" +
                    printable(fields) + ")");
  }
  if (!table.against.empty()) {
    lines.push_back(comparison_text(table));
  }
  if (!table.published_title.empty()) {
    lines.push_back("published: " + printable(table.published_title));
  }
  return lines;
}

std::vector<std::string> legend(const Figure& figure) {
  std::vector<std::string> lines;
  const bool bars =
      std::any_of(figure.series.begin(), figure.series.end(), [&](const FigureSeries& series) {
        return std::any_of(series.points.begin(), series.points.end(),
                           [&](const FigurePoint& point) {
                             return error_bar(point.cell.measured, figure.errors);
                           });
      });
  if (bars) {
    static constexpr const char* kBars[] = {"± sample deviation", "± standard error",
                                            "95 % interval (Student's t)"};
    lines.push_back(
        fmt::format("points: mean over seeds; bars: {}", kBars[static_cast<int>(figure.errors)]));
  }
  for (const std::string& title : figure.published_titles) {
    lines.push_back("published (hollow points): " + printable(title));
  }
  for (const std::string& note : figure.notes) lines.push_back(printable(note));
  return lines;
}

std::vector<std::string> legend(const Ranks& ranks) {
  const questions::Ranking& ranking = ranks.ranking;
  std::vector<std::string> lines;
  if (ranks.has_ranks()) {
    lines.push_back(fmt::format(
        "variants that share a letter do not differ significantly (level {:g}): by Nemenyi's "
        "critical difference, or by Wilcoxon's exact test over tasks with Holm's correction",
        ranking.level));
    lines.push_back(printable(fmt::format("tasks: {}", fmt::join(ranking.tasks, ", "))));
  }
  for (const std::string& note : ranks.notes) lines.push_back(printable(note));
  return lines;
}

std::vector<std::string> errata_of(const Figure& figure) {
  std::set<std::string> lines;
  for (const FigureSeries& series : figure.series) {
    for (const PublishedPoint& point : series.published) {
      if (point.erratum.empty()) continue;
      lines.insert("erratum of " + printable(point.row + ": " + point.erratum));
    }
  }
  return {lines.begin(), lines.end()};
}

Table table_of_points(const Figure& figure) {
  Table table;
  table.key = figure.key;
  table.title = figure.title;
  const bool published = !figure.published_titles.empty();
  table.columns.push_back({"y", "", figure.y.name});
  if (published) table.columns.push_back({"published", "", "published"});
  const auto empty = [] {
    Cell cell;
    cell.measured.kind = Cell::Kind::text;
    cell.measured.spread = false;
    return cell;
  };
  const auto number = [&](double value, const std::string& erratum) {
    Cell cell = empty();
    cell.measured.kind = Cell::Kind::number;
    cell.measured.mean = value;
    cell.digits = figure.digits;
    cell.published.erratum = erratum;
    return cell;
  };
  const auto row = [&](const Head& head, Cell measured, Cell printed) {
    table.rows.push_back(head);
    std::vector<Cell>& cells = table.cells.emplace_back();
    cells.push_back(std::move(measured));
    if (published) cells.push_back(std::move(printed));
  };
  for (const FigureSeries& series : figure.series) {
    std::map<double, std::pair<Cell, Cell>> by_x;
    const auto at = [&](double x) -> std::pair<Cell, Cell>& {
      return by_x.try_emplace(x, empty(), empty()).first->second;
    };
    for (const FigurePoint& point : series.points) at(point.x).first = point.cell;
    for (const PublishedPoint& point : series.published) {
      at(point.x).second = number(point.y, point.erratum);
    }
    for (auto& [x, cells] : by_x) {
      row({series.key + " " + exact_text(x), series.name,
           figure.x.name + " " + number_text(x, std::nullopt)},
          std::move(cells.first), std::move(cells.second));
    }
  }
  for (const HorizontalLine& line : figure.horizontal) {
    Cell measured = line.cell;
    const InPaper& paper = measured.published;
    Cell printed = paper.number ? number(*paper.number, paper.erratum) : empty();
    measured.published.number.reset();
    row({line.key, "", line.name}, std::move(measured), std::move(printed));
  }
  return table;
}

Table table_of(const Section& section) {
  if (const auto* figure = std::get_if<Figure>(&section)) return table_of_points(*figure);
  if (const auto* ranks = std::get_if<Ranks>(&section)) return table_of_ranks(*ranks);
  return std::get<Table>(section);
}

std::vector<std::string> legend_of_drawn(const Section& section) {
  if (const auto* figure = std::get_if<Figure>(&section)) return legend(*figure);
  const auto* ranks = std::get_if<Ranks>(&section);
  if (ranks == nullptr) return {};
  std::vector<std::string> lines = legend(*ranks);
  lines.insert(lines.begin(),
               printable(ranks->has_ranks() ? tests_text(ranks->ranking)
                                            : "no ranks: " + ranks->ranking.missing));
  return lines;
}

bool has_published(const std::vector<Cell>& row) {
  return std::any_of(row.begin(), row.end(),
                     [](const Cell& cell) { return cell.published.is_there(); });
}

}  // namespace petlab::reports
