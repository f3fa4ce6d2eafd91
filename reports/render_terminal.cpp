#include <algorithm>

#include "reports/cell_text.h"
#include "reports/render.h"
#include "reports/text.h"

namespace petlab::reports {
namespace {

constexpr char kBold[] = "\033[1m";
constexpr char kDim[] = "\033[2m";
constexpr char kUnder[] = "\033[4m";
constexpr char kPlain[] = "\033[0m";
constexpr int kGap = 2;

std::string padding(int width) {
  return std::string(static_cast<std::size_t>(std::max(0, width)), ' ');
}

// A line of the table's body, formatted as text.
struct BodyLine {
  enum class Kind { group, cells, published, difference };
  Kind kind = Kind::cells;
  std::string label;
  std::vector<CellText> cells;
  std::vector<bool> best;
  std::vector<bool> second;
};

struct Column {
  std::vector<std::string> head;
  int value = 0;  // width of CellText::value
  int rest = 0;
  int width = 0;
};

std::vector<BodyLine> body_of(const Table& table) {
  std::vector<BodyLine> body;
  const Errata errata(table);
  std::string group;
  const std::string indent = std::any_of(table.rows.begin(), table.rows.end(),
                                         [](const Head& head) { return !head.group.empty(); })
                                 ? "  "
                                 : "";
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    const Head& head = table.rows[row];
    if (head.group != group) {
      group = head.group;
      if (!group.empty()) body.push_back({BodyLine::Kind::group, printable(group), {}, {}, {}});
    }
    BodyLine line{BodyLine::Kind::cells, indent + printable(head.name), {}, {}, {}};
    BodyLine published{BodyLine::Kind::published, indent + "  published", {}, {}, {}};
    BodyLine difference{BodyLine::Kind::difference, indent + "  difference", {}, {}, {}};
    bool differs = false;
    for (const Cell& cell : table.cells[row]) {
      line.cells.push_back(cell_text(cell));
      const bool printed = cell.published.is_there();
      if (!printed) line.cells.back().marks += errata.mark(cell);
      line.best.push_back(cell.standing.best);
      line.second.push_back(cell.standing.second);
      published.cells.push_back(
          printed ? CellText{published_text(cell), "", errata.mark(cell), true} : CellText());
      difference.cells.push_back({difference_text(cell), "", "", true});
      differs = differs || !difference.cells.back().value.empty();
    }
    body.push_back(std::move(line));
    if (has_published(table.cells[row])) body.push_back(std::move(published));
    if (differs) body.push_back(std::move(difference));
  }
  return body;
}

std::vector<Column> columns_of(const Table& table, const std::vector<BodyLine>& body) {
  std::vector<Column> columns(table.columns.size());
  for (std::size_t i = 0; i < columns.size(); ++i) {
    Column& column = columns[i];
    for (const BodyLine& line : body) {
      if (line.cells.empty()) continue;
      if (!line.cells[i].aligned) continue;
      column.value = std::max(column.value, display_width(line.cells[i].value));
      column.rest = std::max(column.rest, display_width(line.cells[i].rest + line.cells[i].marks));
    }
    column.width = column.value + column.rest;
    for (const BodyLine& line : body) {
      if (line.cells.empty()) continue;
      column.width = std::max(column.width, display_width(line.cells[i].whole()));
    }
    const std::string name = printable(table.columns[i].name);
    for (const std::string& word : wrapped(name, 0)) {
      column.width = std::max(column.width, display_width(word));
    }
    column.head = wrapped(name, column.width);
  }
  return columns;
}

class Writer {
 public:
  Writer(const Table& table, const RenderOptions& options)
      : options_(options), body_(body_of(table)), columns_(columns_of(table, body_)) {
    for (const BodyLine& line : body_) label_ = std::max(label_, display_width(line.label));
  }

  std::string text() {
    if (columns_.empty()) block(0, 0);
    for (std::size_t first = 0; first < columns_.size();) {
      std::size_t last = first;
      int width = label_;
      do {
        width += kGap + columns_[last].width;
        ++last;
      } while (last < columns_.size() &&
               (options_.width <= 0 || width + kGap + columns_[last].width <= options_.width));
      if (first > 0) text_ += "\n";
      block(first, last);
      first = last;
    }
    return std::move(text_);
  }

 private:
  void line(std::string content, const char* style = nullptr) {
    content.erase(content.find_last_not_of(' ') + 1);
    if (options_.colour && style != nullptr) content = style + content + kPlain;
    text_ += content + "\n";
  }

  void block(std::size_t first, std::size_t last) {
    std::size_t head_lines = 0;
    int width = label_;
    for (std::size_t i = first; i < last; ++i) {
      head_lines = std::max(head_lines, columns_[i].head.size());
      width += kGap + columns_[i].width;
    }
    for (std::size_t h = 0; h < head_lines; ++h) {
      std::string content = padding(label_);
      for (std::size_t i = first; i < last; ++i) {
        const Column& column = columns_[i];
        const std::size_t above = head_lines - column.head.size();
        const std::string word = h < above ? "" : column.head[h - above];
        content += padding(kGap + column.width - display_width(word)) + word;
      }
      line(std::move(content), kBold);
    }
    std::string rule;
    for (int i = 0; i < width; ++i) rule += "─";
    line(rule, kDim);
    for (const BodyLine& row : body_) {
      std::string content = row.label + padding(label_ - display_width(row.label));
      for (std::size_t i = first; i < last && !row.cells.empty(); ++i) {
        const Column& column = columns_[i];
        const CellText& cell = row.cells[i];
        const int right = cell.aligned ? column.rest - display_width(cell.rest + cell.marks) : 0;
        const int left = column.width - right - display_width(cell.whole());
        const bool cells = options_.colour && row.kind == BodyLine::Kind::cells;
        const char* const style = !cells ? "" : row.best[i] ? kBold : row.second[i] ? kUnder : "";
        content += padding(kGap + left) + style + cell.whole() + (*style != '\0' ? kPlain : "") +
                   padding(right);
      }
      line(std::move(content), row.kind == BodyLine::Kind::cells   ? nullptr
                               : row.kind == BodyLine::Kind::group ? kBold
                                                                   : kDim);
    }
  }

  const RenderOptions& options_;
  std::vector<BodyLine> body_;
  std::vector<Column> columns_;
  int label_ = 0;
  std::string text_;
};

}  // namespace

std::string to_terminal(const Report& report, const RenderOptions& options) {
  std::string text = printable(report.name);
  if (options.colour) text = kBold + text + kPlain;
  if (!report.about.empty()) text += ": " + printable(report.about);
  text += "\n";
  for (const SweepProgress& progress : report.progress) text += progress_text(progress) + "\n";
  const auto say = [&](const std::string& line, const char* style) {
    text += (options.colour ? style + line + kPlain : line) + "\n";
  };
  for (const Section& section : report.sections) {
    const Table made = is_drawn(section) ? table_of(section) : Table();
    const Table& table = is_drawn(section) ? made : std::get<Table>(section);
    text += "\n";
    if (!table.title.empty()) say(printable(table.title), kBold);
    text += Writer(table, options).text() + "\n";
    for (const std::string& line : legend_of_drawn(section)) say(line, kDim);
    for (const std::string& line : legend(table)) say(line, kDim);
    for (const std::string& line : Errata(table).lines()) say(line, kDim);
  }
  if (report.sections.size() > 1 && !report.notes.empty()) text += "\n";
  for (const std::string& note : report.notes) say(printable(note), kDim);
  return text;
}

}  // namespace petlab::reports
