#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "reports/cell_text.h"
#include "reports/html.h"
#include "reports/text.h"

namespace petlab::reports {
namespace {

void add_detail(std::string& details, const std::string& what, const std::string& value) {
  details += fmt::format("<dt>{}</dt><dd>{}</dd>", escaped_html(what), escaped_html(value));
}

// The tooltip: all data of the cell.
std::string details_of(const Cell& cell, double confidence) {
  std::string list;
  const Measured& measured = cell.measured;
  if (measured.is_number()) {
    add_detail(list, measured.spread ? "mean" : "value", exact_text(*measured.mean));
    if (measured.deviation) add_detail(list, "sample deviation", exact_text(*measured.deviation));
    if (measured.spread && measured.ci_low) {
      add_detail(list, fmt::format("{:g} % interval", 100 * confidence),
                 fmt::format("{} to {}", number_text(*measured.ci_low, cell.digits),
                             number_text(*measured.ci_high, cell.digits)));
    }
  }
  if (measured.kind == Cell::Kind::text) add_detail(list, "value", measured.text);
  if (measured.kind == Cell::Kind::undefined) {
    add_detail(list, "undefined",
               fmt::format("{} of {} values", measured.undefined(), measured.n()));
  }
  if (!measured.reason.empty()) add_detail(list, "missing", measured.reason);
  if (measured.spread && measured.n() > 0) {
    add_detail(list, "n",
               measured.partial() ? fmt::format("{} of {} planned", measured.n(), measured.planned)
                                  : fmt::format("{}", measured.n()));
  }
  if (cell.published.number) add_detail(list, "published", exact_text(*cell.published.number));
  if (cell.published.text) add_detail(list, "published", *cell.published.text);
  if (const auto difference = cell.difference()) {
    add_detail(list, "difference", difference_text(*difference, cell.digits));
  }
  if (!cell.published.erratum.empty()) add_detail(list, "erratum", cell.published.erratum);
  if (const auto& comparison = cell.standing.comparison) {
    add_detail(list, "paired t test",
               fmt::format("p = {:.3g}, after Holm's correction {:.3g}, n = {}", *comparison->p,
                           *comparison->adjusted_p, comparison->pairs));
  }
  if (cell.trials.stale) add_detail(list, "stale", "numerics or data changed since");
  if (cell.trials.numerics.size() > 1) {
    add_detail(list, "mixed numerics", fmt::format("{}", fmt::join(cell.trials.numerics, " | ")));
  }
  if (!cell.trials.mixed_code.empty()) {
    add_detail(list, "mixed code", fmt::format("{}", fmt::join(cell.trials.mixed_code, ", ")));
  }
  if (!cell.trials.mixed_fields.empty()) {
    add_detail(list, "trials differ in",
               fmt::format("{}", fmt::join(cell.trials.mixed_fields, ", ")));
  }
  constexpr std::size_t kMostSamples = 12;
  for (std::size_t i = 0; measured.spread && i < std::min(measured.samples.size(), kMostSamples);
       ++i) {
    const Sample& sample = measured.samples[i];
    std::string ids;
    for (const std::string& id : sample.trial_ids) {
      ids += fmt::format(" <code>{}</code>", escaped_html(id));
    }
    if (sample.trial_ids.size() > 2) ids = fmt::format(" {} trials", sample.trial_ids.size());
    list += fmt::format("<dt>seed {}</dt><dd>{}{}</dd>", sample.seed,
                        sample.value ? number_text(*sample.value, cell.digits) : "undefined", ids);
  }
  if (measured.spread && measured.samples.size() > kMostSamples) {
    add_detail(list, "and", fmt::format("{} more", measured.samples.size() - kMostSamples));
  }
  return fmt::format("<template><dl>{}</dl></template>", list);
}

// Adds break opportunities to the name of a variant.
std::string breakable(const std::string& html) {
  std::string result;
  for (const char c : html) {
    result += c;
    if (c == '_') result += "<wbr>";
  }
  return result;
}

// Escapes spaces, which end an id in a list, and the separator between keys.
std::string id_part(std::string_view key) {
  std::string result;
  for (const char c : key) {
    if (c == '%' || c == '/' || static_cast<unsigned char>(c) <= ' ') {
      result += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    } else {
      result += c;
    }
  }
  return result;
}

std::string cell_html(const Cell& cell, const std::string& erratum, const std::string& id,
                      double confidence) {
  static constexpr const char* kClasses[] = {"missing", "undefined", "number", "text"};
  std::string html = fmt::format("<td id=\"{}\" class=\"{}{}\"", escaped_html(id),
                                 kClasses[static_cast<int>(cell.measured.kind)],
                                 cell.standing.best     ? " best"
                                 : cell.standing.second ? " second"
                                                        : "");
  if (cell.trials.ids != nullptr) {
    html += fmt::format(" data-trials=\"{}\"",
                        escaped_html(fmt::format("{}", fmt::join(*cell.trials.ids, " "))));
  }
  if (cell.measured.is_number()) html += " data-value=\"" + exact_text(*cell.measured.mean) + "\"";
  if (cell.measured.kind == Cell::Kind::text) {
    html += " data-text=\"" + escaped_html(cell.measured.text) + "\"";
  }
  CellText text = cell_text(cell);
  if (!cell.published.is_there()) text.marks += erratum;
  html += "><span class=\"value\">" + escaped_html(text.value) + "</span>";
  if (!text.rest.empty()) html += "<span class=\"rest\">" + escaped_html(text.rest) + "</span>";
  if (!text.marks.empty()) html += "<span class=\"marks\">" + escaped_html(text.marks) + "</span>";
  if (cell.published.is_there()) {
    html += "<span class=\"paper\">" + escaped_html(published_text(cell));
    if (!erratum.empty()) html += "<span class=\"marks\">" + erratum + "</span>";
    const std::string compared = difference_text(cell);
    if (!compared.empty()) html += " (" + escaped_html(compared) + ")";
    html += "</span>";
  }
  return html + details_of(cell, confidence) + "</td>\n";
}

}  // namespace

std::string escaped_html(std::string_view text) {
  std::string result;
  for (const char c : printable(text)) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      case '\'':
        result += "&#39;";
        break;
      default:
        result += c;
    }
  }
  return result;
}

std::string json_in_html(std::string json) {
  std::string result;
  for (const char c : json) {
    if (c == '<') {
      result += "\\u003c";
    } else {
      result += c;
    }
  }
  return result;
}

std::string list_items(const std::vector<std::string>& lines) {
  std::string html;
  for (const std::string& line : lines) html += "<li>" + escaped_html(line) + "</li>\n";
  return html;
}

std::string html_progress(const std::vector<SweepProgress>& progress) {
  std::string bars;
  std::int64_t trials = 0;
  std::int64_t done = 0;
  for (const SweepProgress& sweep : progress) {
    std::map<std::string, std::int64_t> counts = {{"done", 0}, {"running", 0}, {"failed", 0}};
    for (const auto& [state, count] : sweep.states) {
      const bool has_numbers = state == "cached" || state == "stale";
      const auto counted = counts.find(has_numbers ? "done" : state);
      if (counted != counts.end()) counted->second += count;
    }
    std::string parts;
    for (const char* state : {"done", "running", "failed"}) {
      if (counts[state] == 0) continue;
      const double share = static_cast<double>(counts[state]) / static_cast<double>(sweep.trials);
      parts += fmt::format("<i class=\"{}\" style=\"width:{:.4g}%\"></i>", state, 100 * share);
    }
    done += counts["done"];
    trials += sweep.trials;
    bars +=
        fmt::format("<li><span class=\"bar\" aria-hidden=\"true\">{}</span> <span>{}</span></li>\n",
                    parts, escaped_html(progress_text(sweep)));
  }
  bars = "<ul class=\"progress\">\n" + bars + "</ul>\n";
  constexpr std::size_t kMostShown = 4;
  if (progress.size() <= kMostShown) return bars;
  return fmt::format(
      "<details class=\"progress\">\n<summary>{} sweeps: {} of {} trials done</summary>\n"
      "{}</details>\n",
      progress.size(), number_text(static_cast<double>(done), 0),
      number_text(static_cast<double>(trials), 0), bars);
}

std::string section_id(const std::string& report, const Section& section) {
  const std::string& key = std::visit(
      [](const auto& part) -> const auto& { return part.key; }, section);
  return id_part(key.empty() ? report : key);
}

std::string cell_id(std::string_view section, std::string_view row, std::string_view column) {
  return fmt::format("{}/{}/{}", section, id_part(row), id_part(column));
}

std::string html_table(const Table& table, const std::string& section, const std::string& label) {
  const Errata errata(table);
  const bool groups = std::any_of(table.rows.begin(), table.rows.end(),
                                  [](const Head& head) { return !head.group.empty(); });
  std::string html = fmt::format("<table aria-label=\"{}\">\n<thead>\n<tr>", escaped_html(label));
  const auto head = [&](const std::string& name, const char* classes) {
    html += fmt::format("<th scope=\"col\"{}><button type=\"button\">{}</button></th>\n", classes,
                        escaped_html(name));
  };
  if (groups) head("group", " class=\"label group\"");
  head("row", " class=\"label sticky\"");
  for (const Head& column : table.columns) head(column.name, "");
  html += "</tr>\n</thead>\n<tbody>\n";
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    const Head& of_row = table.rows[row];
    html += "<tr>";
    const std::string group = escaped_html(of_row.group);
    if (groups) {
      html += fmt::format("<th class=\"label group\" data-text=\"{0}\">{0}</th>\n", group);
    }
    // On narrow screens there is no column of groups; the group is shown above the row's name.
    const std::string name = escaped_html(of_row.name);
    html += fmt::format(
        "<th scope=\"row\" class=\"label sticky\" data-text=\"{}\">{}<span>{}</span></th>\n", name,
        group.empty() ? "" : "<small>" + group + "</small>", breakable(name));
    for (std::size_t column = 0; column < table.columns.size(); ++column) {
      const Cell& cell = table.cells[row][column];
      html += cell_html(cell, errata.mark(cell),
                        cell_id(section, of_row.key, table.columns[column].key), table.confidence);
    }
    html += "</tr>\n";
  }
  return html + "</tbody>\n</table>\n";
}

}  // namespace petlab::reports
