#include "reports/cell_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
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
    for (const Cell& cell : row) fields.insert(cell.mixed_fields.begin(), cell.mixed_fields.end());
  }
  return fmt::format("{}", fmt::join(fields, ", "));
}

}  // namespace

CellText cell_text(const Cell& cell) {
  CellText text;
  switch (cell.kind) {
    case Cell::Kind::missing:
      return {"—", "", "", true};
    case Cell::Kind::text:
      return {printable(cell.text), "", "", false};
    case Cell::Kind::undefined:
      text.aligned = false;
      text.value = "undefined";
      if (cell.undefined() < cell.n()) {
        text.rest = fmt::format(" ({} of {})", cell.undefined(), cell.n());
      }
      break;
    case Cell::Kind::number:
      text.value = number_text(*cell.mean, cell.digits);
      if (!cell.spread) break;
      if (cell.deviation) text.rest = " ± " + number_text(*cell.deviation, cell.digits);
      text.rest += cell.partial() ? fmt::format(" ({}/{})", cell.n(), cell.planned)
                                  : fmt::format(" ({})", cell.n());
      break;
  }
  if (cell.stale) text.marks += "†";
  if (cell.numerics.size() > 1) text.marks += "‡";
  if (!cell.mixed_fields.empty()) text.marks += "§";
  return text;
}

std::string published_text(const Cell& cell) {
  if (cell.published) return number_text(*cell.published, cell.digits);
  if (cell.published_text) return printable(*cell.published_text);
  return "—";
}

std::string difference_text(const Cell& cell) {
  if (cell.difference) return difference_text(*cell.difference, cell.digits);
  if (cell.published_text && cell.kind == Cell::Kind::text) {
    return cell.text == *cell.published_text ? "=" : "≠";
  }
  return "";
}

std::string progress_text(const SweepProgress& progress) {
  std::int64_t done = 0;
  std::string others;
  for (const auto& [state, count] : progress.states) {
    // A trial that another sweep finished, or that is stale, has its numbers all the same.
    if (state == "done" || state == "cached" || state == "stale") {
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
  if (any_cell(table,
               [](const Cell& cell) { return cell.kind == Cell::Kind::number && cell.spread; })) {
    lines.emplace_back("mean ± sample deviation (n seeds)");
  }
  if (any_cell(table, [](const Cell& cell) {
        return cell.kind == Cell::Kind::number && cell.spread && cell.partial();
      })) {
    lines.emplace_back("(1/2) partial: 1 of the 2 planned seeds has a value");
  }
  if (any_cell(table, [](const Cell& cell) { return cell.kind == Cell::Kind::missing; })) {
    lines.emplace_back("— no value yet");
  }
  if (any_cell(table, [](const Cell& cell) { return cell.kind == Cell::Kind::undefined; })) {
    lines.emplace_back("undefined: the metric has no value for the predictions of a seed");
  }
  if (any_cell(table, [](const Cell& cell) { return cell.stale; })) {
    lines.emplace_back("† stale: numerics or data changed since (petlab run --rerun stale)");
  }
  if (any_cell(table, [](const Cell& cell) { return cell.numerics.size() > 1; })) {
    lines.emplace_back(
        "‡ mixed numerics: its trials ran under numerics that are not bit-identical");
  }
  if (const std::string fields = mixed_fields_of(table); !fields.empty()) {
    lines.push_back("§ mixed configurations: its trials differ in more than the seed (" +
                    printable(fields) + ")");
  }
  if (any_cell(table, [](const Cell& cell) { return !cell.erratum.empty(); })) {
    lines.emplace_back("published values with known errata are explained in the HTML and JSON");
  }
  if (!table.published_title.empty()) {
    lines.push_back("published: " + printable(table.published_title));
  }
  for (const std::string& note : table.notes) lines.push_back(printable(note));
  return lines;
}

bool has_published(const std::vector<Cell>& row) {
  return std::any_of(row.begin(), row.end(), [](const Cell& cell) {
    return cell.published.has_value() || cell.published_text.has_value();
  });
}

}  // namespace petlab::reports
