#include <fmt/format.h>

#include <algorithm>

#include "reports/cell_text.h"
#include "reports/html.h"
#include "reports/text.h"

namespace petlab::reports {
namespace {

void add_detail(std::string& details, const std::string& what, const std::string& value) {
  details += fmt::format("<dt>{}</dt><dd>{}</dd>", escaped_html(what), escaped_html(value));
}

// What hovering shows: everything that the cell knows.
std::string details_of(const Cell& cell, const std::string& row, const std::string& column,
                       double confidence) {
  std::string list;
  if (cell.kind == Cell::Kind::number) {
    add_detail(list, cell.spread ? "mean" : "value", exact_text(*cell.mean));
    if (cell.deviation) add_detail(list, "sample deviation", exact_text(*cell.deviation));
    if (cell.spread && cell.ci_low) {
      add_detail(list, fmt::format("{:g} % interval", 100 * confidence),
                 fmt::format("{} to {}", number_text(*cell.ci_low, cell.digits),
                             number_text(*cell.ci_high, cell.digits)));
    }
  }
  if (cell.kind == Cell::Kind::text) add_detail(list, "value", cell.text);
  if (cell.kind == Cell::Kind::undefined) {
    add_detail(list, "undefined", fmt::format("{} of {} values", cell.undefined(), cell.n()));
  }
  if (!cell.reason.empty()) add_detail(list, "missing", cell.reason);
  if (cell.spread && cell.n() > 0) {
    add_detail(list, "n",
               cell.partial() ? fmt::format("{} of {} planned", cell.n(), cell.planned)
                              : fmt::format("{}", cell.n()));
  }
  if (cell.published) add_detail(list, "published", exact_text(*cell.published));
  if (cell.published_text) add_detail(list, "published", *cell.published_text);
  if (cell.difference) {
    add_detail(list, "difference", difference_text(*cell.difference, cell.digits));
  }
  if (!cell.erratum.empty()) add_detail(list, "erratum", cell.erratum);
  if (cell.comparison) {
    add_detail(list, "paired t test",
               fmt::format("p = {:.3g}, after Holm's correction {:.3g}, n = {}", cell.comparison->p,
                           cell.comparison->adjusted, cell.comparison->n));
  }
  if (cell.stale) add_detail(list, "stale", "numerics or data changed since");
  if (cell.numerics.size() > 1) {
    add_detail(list, "mixed numerics", fmt::format("{}", fmt::join(cell.numerics, " | ")));
  }
  if (!cell.mixed_fields.empty()) {
    add_detail(list, "trials differ in", fmt::format("{}", fmt::join(cell.mixed_fields, ", ")));
  }
  constexpr std::size_t kMostSamples = 12;
  for (std::size_t i = 0; cell.spread && i < std::min(cell.samples.size(), kMostSamples); ++i) {
    const Sample& sample = cell.samples[i];
    std::string ids;
    for (const std::string& id : sample.trial_ids) {
      ids += fmt::format(" <code>{}</code>", escaped_html(id.substr(0, 12)));
    }
    if (sample.trial_ids.size() > 2) ids = fmt::format(" {} trials", sample.trial_ids.size());
    list += fmt::format("<dt>seed {}</dt><dd>{}{}</dd>", sample.seed,
                        sample.value ? number_text(*sample.value, cell.digits) : "undefined", ids);
  }
  if (cell.spread && cell.samples.size() > kMostSamples) {
    add_detail(list, "and", fmt::format("{} more", cell.samples.size() - kMostSamples));
  }
  return fmt::format("<template><h2>{} · {}</h2><dl>{}</dl></template>", escaped_html(row),
                     escaped_html(column), list);
}

std::string cell_html(const Cell& cell, const std::string& row, const std::string& column,
                      double confidence) {
  static constexpr const char* kClasses[] = {"missing", "undefined", "number", "text"};
  std::string html =
      fmt::format("<td tabindex=\"0\" class=\"{}{}\"", kClasses[static_cast<int>(cell.kind)],
                  cell.best     ? " best"
                  : cell.second ? " second"
                                : "");
  if (cell.kind == Cell::Kind::number) html += " data-value=\"" + exact_text(*cell.mean) + "\"";
  if (cell.kind == Cell::Kind::text) html += " data-text=\"" + escaped_html(cell.text) + "\"";
  const CellText text = cell_text(cell);
  html += "><span class=\"value\">" + escaped_html(text.value) + "</span>";
  if (!text.rest.empty()) html += "<span class=\"rest\">" + escaped_html(text.rest) + "</span>";
  if (!text.marks.empty()) html += "<span class=\"marks\">" + escaped_html(text.marks) + "</span>";
  if (cell.published || cell.published_text) {
    html += "<span class=\"paper\">" + escaped_html(published_text(cell));
    const std::string compared = difference_text(cell);
    if (!compared.empty()) html += " (" + escaped_html(compared) + ")";
    html += "</span>";
  }
  return html + details_of(cell, row, column, confidence) + "</td>\n";
}

}  // namespace

std::string escaped_html(std::string_view text) {
  std::string made;
  for (const char c : printable(text)) {
    switch (c) {
      case '&':
        made += "&amp;";
        break;
      case '<':
        made += "&lt;";
        break;
      case '>':
        made += "&gt;";
        break;
      case '"':
        made += "&quot;";
        break;
      case '\'':
        made += "&#39;";
        break;
      default:
        made += c;
    }
  }
  return made;
}

std::string json_in_html(std::string json) {
  std::string made;
  for (const char c : json) {
    if (c == '<') {
      made += "\\u003c";
    } else {
      made += c;
    }
  }
  return made;
}

std::string list_items(const std::vector<std::string>& lines) {
  std::string html;
  for (const std::string& line : lines) html += "<li>" + escaped_html(line) + "</li>\n";
  return html;
}

std::string html_table(const Table& table) {
  const bool groups = std::any_of(table.rows.begin(), table.rows.end(),
                                  [](const Head& head) { return !head.group.empty(); });
  std::string html = "<table>\n<thead>\n<tr>";
  const auto head = [&](const std::string& name, const char* classes) {
    html += fmt::format("<th scope=\"col\"{}><button type=\"button\">{}</button></th>\n", classes,
                        escaped_html(name));
  };
  if (groups) head("group", " class=\"label\"");
  head("row", " class=\"label sticky\"");
  for (const Head& column : table.columns) head(column.name, "");
  html += "</tr>\n</thead>\n<tbody>\n";
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    const Head& label = table.rows[row];
    html += "<tr>";
    if (groups) {
      html += fmt::format("<th class=\"label\" data-text=\"{0}\">{0}</th>\n",
                          escaped_html(label.group));
    }
    html += fmt::format("<th scope=\"row\" class=\"label sticky\" data-text=\"{0}\">{0}</th>\n",
                        escaped_html(label.name));
    for (std::size_t column = 0; column < table.columns.size(); ++column) {
      html += cell_html(table.cells[row][column], label.name, table.columns[column].name,
                        table.confidence);
    }
    html += "</tr>\n";
  }
  return html + "</tbody>\n</table>\n";
}

}  // namespace petlab::reports
