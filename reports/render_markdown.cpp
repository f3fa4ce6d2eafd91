#include "reports/cell_text.h"
#include "reports/render.h"
#include "reports/text.h"

namespace petlab::reports {
namespace {

// Escapes Markdown syntax and the ends of table cells.
std::string escaped_markdown(const std::string& text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    // An underscore inside a word (only_share) is not markup.
    const bool inner = i > 0 && i + 1 < text.size() && text[i - 1] != ' ' && text[i + 1] != ' ';
    if (std::string_view("\\|*`<>[]").find(c) != std::string_view::npos || (c == '_' && !inner)) {
      result += '\\';
    }
    result += c;
  }
  return result;
}

void add_row(std::string& text, const std::vector<std::string>& cells) {
  text += "|";
  for (const std::string& cell : cells) text += " " + cell + " |";
  text += "\n";
}

void add_table(std::string& text, const Table& table) {
  std::vector<std::string> head = {" "};
  std::vector<std::string> rule = {"---"};
  for (const Head& column : table.columns) {
    head.push_back(escaped_markdown(printable(column.name)));
    rule.emplace_back("---:");
  }
  add_row(text, head);
  add_row(text, rule);
  const Errata errata(table);
  std::string group;
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    const std::vector<Cell>& cells = table.cells[row];
    if (table.rows[row].group != group) {
      group = table.rows[row].group;
      std::vector<std::string> line(table.columns.size() + 1);
      line.front() = "**" + escaped_markdown(printable(group)) + "**";
      if (!group.empty()) add_row(text, line);
    }
    std::vector<std::string> line = {escaped_markdown(printable(table.rows[row].name))};
    std::vector<std::string> published = {"*published*"};
    std::vector<std::string> difference = {"*difference*"};
    bool differs = false;
    for (const Cell& cell : cells) {
      const bool printed = cell.published.is_there();
      const std::string mark = errata.mark(cell);
      const std::string shown = escaped_markdown(cell_text(cell).whole()) + (printed ? "" : mark);
      line.push_back(cell.standing.best     ? "**" + shown + "**"
                     : cell.standing.second ? "<ins>" + shown + "</ins>"
                                            : shown);
      published.push_back(printed ? "*" + escaped_markdown(published_text(cell)) + "*" + mark : "");
      const std::string compared = difference_text(cell);
      differs = differs || !compared.empty();
      difference.push_back(compared.empty() ? "" : "*" + escaped_markdown(compared) + "*");
    }
    add_row(text, line);
    if (has_published(cells)) add_row(text, published);
    if (differs) add_row(text, difference);
  }
}

}  // namespace

std::string to_markdown(const Report& report) {
  std::string text = "## " + escaped_markdown(printable(report.name)) + "\n\n";
  if (!report.about.empty()) text += escaped_markdown(printable(report.about)) + "\n\n";
  for (const SweepProgress& progress : report.progress) {
    text += escaped_markdown(progress_text(progress)) + "\n\n";
  }
  const auto say = [&](const std::string& line) { text += "- " + escaped_markdown(line) + "\n"; };
  for (const Section& section : report.sections) {
    if (&section != &report.sections.front()) text += "\n";
    const Table made = is_drawn(section) ? table_of(section) : Table();
    const Table& table = is_drawn(section) ? made : std::get<Table>(section);
    if (!table.title.empty()) text += "### " + escaped_markdown(printable(table.title)) + "\n\n";
    add_table(text, table);
    text += "\n";
    for (const std::string& line : legend_of_drawn(section)) say(line);
    for (const std::string& line : legend(table)) say(line);
    for (const std::string& line : Errata(table).lines()) say(line);
  }
  if (report.sections.size() > 1 && !report.notes.empty()) text += "\n";
  for (const std::string& note : report.notes) say(printable(note));
  return text;
}

}  // namespace petlab::reports
