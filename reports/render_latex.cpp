#include <fmt/format.h>

#include <algorithm>

#include "reports/cell_text.h"
#include "reports/latex_text.h"
#include "reports/rank_diagram.h"
#include "reports/render.h"
#include "reports/text.h"

namespace petlab::reports {
namespace {

std::string cell_latex(const Cell& cell) {
  const CellText text = cell_text(cell);
  std::string value = escaped_latex(text.value);
  if (cell.standing.best) value = "\\textbf{" + value + "}";
  if (cell.standing.second) value = "\\underline{" + value + "}";
  if (!text.rest.empty()) {
    value +=
        "\\,{\\small " + escaped_latex(text.rest.substr(text.rest.find_first_not_of(' '))) + "}";
  }
  if (!text.marks.empty()) value += "\\textsuperscript{" + escaped_latex(text.marks) + "}";
  return value;
}

// Stacks words so that a column is as wide as its numbers; short words share a line.
std::string head_lines(const std::string& name) {
  constexpr std::size_t kShort = 11;
  std::string result;
  std::size_t length = 0;
  for (std::size_t at = 0; at <= name.size();) {
    const std::size_t end = std::min(name.find(' ', at), name.size());
    const std::string word = name.substr(at, end - at);
    const bool joins = length > 0 && length + 1 + word.size() <= kShort;
    if (at > 0) result += joins ? " " : "\\\\";
    length = joins ? length + 1 + word.size() : word.size();
    result += escaped_latex(word);
    at = end + 1;
  }
  return "\\petlabhead{" + result + "}";
}

class TableWriter {
 public:
  explicit TableWriter(const Table& table) : table_(table), errata_(table) { choose_place(); }

  std::string text(const std::vector<std::string>& notes) {
    std::string result = "\\begin{table}[p]\n\\centering\n";
    if (!table_.title.empty()) result += "\\caption{" + escaped_latex(table_.title) + "}\n";
    result += "\\begin{fitted}\n\\begin{tabular}{l" + std::string(width(), 'r') + "}\n\\toprule\n" +
              head() + "\\midrule\n" + rows() + "\\bottomrule\n\\end{tabular}\n\\end{fitted}\n";
    const auto errata = errata_.all();
    if (!notes.empty() || !errata.empty()) {
      result += "\\begin{tablenotes}\n";
      for (const auto& [letter, erratum] : errata) {
        result +=
            "\\textsuperscript{" + letter + "} erratum: " + escaped_latex(erratum) + "\\par\n";
      }
      for (const std::string& note : notes) result += escaped_latex(note) + "\\par\n";
      result += "\\end{tablenotes}\n";
    }
    return result + "\\end{table}\n";
  }

 private:
  // The additional sub-columns of a column.
  struct Parts {
    bool published = false;
    bool difference = false;
    std::size_t count() const { return 1 + (published ? 1 : 0) + (difference ? 1 : 0); }
  };

  // Published values go below the measured ones, as in other formats. If that makes a narrow table
  // longer than a page, they go next to them.
  void choose_place() {
    constexpr std::size_t kMostLines = 32;
    constexpr std::size_t kMostColumns = 9;
    parts_.resize(table_.columns.size());
    std::size_t lines = 0;
    for (const std::vector<Cell>& cells : table_.cells) {
      bool published = false;
      bool difference = false;
      for (std::size_t column = 0; column < cells.size(); ++column) {
        const bool printed = cells[column].published.is_there();
        const bool compared = !difference_text(cells[column]).empty();
        parts_[column].published = parts_[column].published || printed;
        parts_[column].difference = parts_[column].difference || compared;
        published = published || printed;
        difference = difference || compared;
      }
      lines += 1 + (published ? 1 : 0) + (difference ? 1 : 0);
    }
    std::size_t columns = 0;
    for (const Parts& parts : parts_) columns += parts.count();
    beside_ = lines > kMostLines && columns <= kMostColumns;
    if (!beside_) parts_.assign(table_.columns.size(), {});
  }

  std::size_t width() const {
    std::size_t columns = 0;
    for (const Parts& parts : parts_) columns += parts.count();
    return columns;
  }

  std::string head() const {
    std::string line;
    std::string rules;
    std::string below;
    std::size_t at = 2;
    for (std::size_t column = 0; column < parts_.size(); ++column) {
      const std::size_t count = parts_[column].count();
      const std::string name = head_lines(table_.columns[column].name);
      line += " & ";
      line += count == 1 ? name : fmt::format("\\multicolumn{{{}}}{{c}}{{{}}}", count, name);
      if (count > 1) rules += fmt::format("\\cmidrule(lr){{{}-{}}}", at, at + count - 1);
      below += count == 1 ? " & " : " & measured";
      if (parts_[column].published) below += " & published";
      if (parts_[column].difference) below += " & difference";
      at += count;
    }
    line += " \\\\\n";
    return rules.empty() ? line : line + rules + "\n" + below + " \\\\\n";
  }

  std::string erratum_mark(const Cell& cell) const {
    const std::string letter = errata_.letter(cell);
    return letter.empty() ? letter : "\\textsuperscript{" + letter + "}";
  }

  std::string measured(const Cell& cell) const {
    return cell_latex(cell) + (cell.published.is_there() ? "" : erratum_mark(cell));
  }
  std::string printed(const Cell& cell) const {
    if (!cell.published.is_there()) return {};
    return "\\small " + escaped_latex(published_text(cell)) + erratum_mark(cell);
  }
  static std::string compared(const Cell& cell) {
    const std::string text = difference_text(cell);
    return text.empty() ? text : "\\small " + escaped_latex(text);
  }

  std::string row_beside(const Head& head, const std::vector<Cell>& cells) const {
    std::string line = escaped_latex(head.name);
    for (std::size_t column = 0; column < cells.size(); ++column) {
      line += " & " + measured(cells[column]);
      if (parts_[column].published) line += " & " + printed(cells[column]);
      if (parts_[column].difference) line += " & " + compared(cells[column]);
    }
    return line + " \\\\\n";
  }

  std::string row_below(const Head& head, const std::vector<Cell>& cells) const {
    std::string line = escaped_latex(head.name);
    std::string published = "\\quad published";
    std::string difference = "\\quad difference";
    bool differs = false;
    for (const Cell& cell : cells) {
      line += " & " + measured(cell);
      published += " & " + printed(cell);
      difference += " & " + compared(cell);
      differs = differs || !compared(cell).empty();
    }
    line += " \\\\\n";
    if (has_published(cells)) line += published + " \\\\\n";
    if (differs) line += difference + " \\\\\n";
    return line;
  }

  std::string rows() const {
    std::string result;
    std::string group;
    for (std::size_t row = 0; row < table_.rows.size(); ++row) {
      const Head& head = table_.rows[row];
      if (head.group != group) {
        group = head.group;
        if (row > 0) result += "\\addlinespace\n";
        if (!group.empty()) {
          result += fmt::format("\\multicolumn{{{}}}{{l}}{{\\textit{{{}}}}} \\\\\n", width() + 1,
                                escaped_latex(group));
        }
      }
      result += beside_ ? row_beside(head, table_.cells[row]) : row_below(head, table_.cells[row]);
    }
    return result;
  }

  const Table& table_;
  bool beside_ = false;
  std::vector<Parts> parts_;  // by column; values in columns of their own only if beside_
  Errata errata_;
};

constexpr const char* kPens[] = {"petlabA", "petlabB", "petlabC", "petlabD",
                                 "petlabE", "petlabF", "petlabG"};
constexpr const char* kMarks[] = {"*", "square*", "triangle*", "diamond*", "pentagon*"};

// The x of any point: a horizontal line needs a valid position on the axis.
double first_x(const Figure& figure) {
  for (const FigureSeries& series : figure.series) {
    if (!series.points.empty()) return series.points.front().x;
    if (!series.published.empty()) return series.published.front().x;
  }
  return 1;
}

std::string caption_latex(const std::string& title, const std::vector<std::string>& notes) {
  std::string caption = escaped_latex(title);
  for (const std::string& note : notes) {
    caption += (caption.empty() ? "" : ". ") + escaped_latex(note);
  }
  return caption.empty() ? caption : "\\caption{" + caption + ".}\n";
}

std::string figure_latex(const Figure& figure, const std::vector<std::string>& notes) {
  std::string result = fmt::format(
      "\\begin{{figure}}[p]\n\\centering\n\\begin{{fitted}}\n"
      "\\begin{{tikzpicture}}\n"
      "\\begin{{axis}}[width=12cm,height=7.5cm,xlabel={{{}}},ylabel={{{}}},"
      "grid=major,grid style={{gray!20}},"
      "legend style={{at={{(0.5,-0.17)}},anchor=north,draw=none,font=\\small}},legend columns=2,"
      "legend cell align=left{}{}]\n",
      escaped_latex(figure.x.name), escaped_latex(figure.y.name),
      figure.x.log ? ",xmode=log,log ticks with fixed point" : "",
      figure.y.log ? ",ymode=log,log ticks with fixed point" : "");
  std::size_t at = 0;
  for (const FigureSeries& series : figure.series) {
    const std::string pen = kPens[at % std::size(kPens)];
    const std::string mark = kMarks[at % std::size(kMarks)];
    ++at;
    bool in_legend = false;
    const auto entry = [&](const std::string& more) {
      result += in_legend ? "" : "\\addlegendentry{" + escaped_latex(series.name) + more + "}\n";
      in_legend = true;
    };
    if (!series.points.empty()) {
      result += fmt::format(
          "\\addplot[{0},mark={1},mark size=1.6pt,error bars/.cd,y dir=both,y explicit] "
          "coordinates {{",
          pen, mark);
      for (const FigurePoint& point : series.points) {
        const auto bar = error_bar(point.cell.measured, figure.errors);
        result += fmt::format(" ({},{}) +- (0,{})", exact_text(point.x),
                              exact_text(*point.cell.measured.mean),
                              bar ? exact_text(bar->high - *point.cell.measured.mean) : "0");
      }
      result += "};\n";
      entry("");
    }
    if (!series.published.empty()) {
      result += fmt::format(
          "\\addplot[{0},dashed,mark={1},mark size=1.6pt,mark options={{solid,fill=white}}{2}] "
          "coordinates {{",
          pen, mark, in_legend ? ",forget plot" : "");
      for (const PublishedPoint& point : series.published) {
        result += fmt::format(" ({},{})", exact_text(point.x), exact_text(point.y));
      }
      result += "};\n";
      entry(" (published)");
    }
  }
  for (const HorizontalLine& line : figure.horizontal) {
    const std::string pen = kPens[at++ % std::size(kPens)];
    const auto rule = [&](double y, const char* style, const std::string& more) {
      // Spans the axis without changing the limits that the points determined.
      result += fmt::format(
          "\\addlegendimage{{{0}{1},no marks}}\\addlegendentry{{{2}{3}}}\n"
          "\\addplot[forget plot,draw=none] coordinates {{({5},{4})}};\n"
          "\\draw[{0}{1}] ({{rel axis cs:0,0}} |- {{axis cs:{5},{4}}}) -- "
          "({{rel axis cs:1,0}} |- {{axis cs:{5},{4}}});\n",
          pen, style, escaped_latex(line.name), more, exact_text(y), exact_text(first_x(figure)));
    };
    if (line.cell.measured.is_number()) rule(*line.cell.measured.mean, "", "");
    if (line.cell.published.number) rule(*line.cell.published.number, ",dashed", " (published)");
  }
  result += "\\end{axis}\n\\end{tikzpicture}\n\\end{fitted}\n";
  return result + caption_latex(figure.title, notes) + "\\end{figure}\n";
}

// A point in a drawing, by its place on the axis from 0 to 1.
std::string at_point(double place, double y) { return fmt::format("({:.4f},{:.1f})", place, y); }

// Draws the diagram with its axis 8 cm wide and a height of 100 pixels as 2.2 cm.
std::string diagram_latex(const Ranks& ranks) {
  const RankDiagram diagram = lay_out(ranks);
  const std::vector<double>& average = ranks.ranking.ranks.average_ranks;
  const double last = static_cast<double>(average.size());
  const auto place = [&](double rank) { return (rank - 1) / (last - 1); };
  std::string result = "\\begin{tikzpicture}[x=8cm,y=-0.022cm,font=\\small]\n";
  const auto line = [&](const char* style, double from_x, double from_y, double to_x, double to_y) {
    result += fmt::format("\\draw[{}] {} -- {};\n", style, at_point(from_x, from_y),
                          at_point(to_x, to_y));
  };
  const auto node = [&](const char* anchor, double x, double y, const std::string& text) {
    result += fmt::format("\\node[anchor={}] at {} {{{}}};\n", anchor, at_point(x, y), text);
  };
  const double axis = diagram.axis_y;
  line("semithick", 0, axis, 1, axis);
  const int step = std::max(1, static_cast<int>(last) / 10);
  for (int rank = 1; rank <= static_cast<int>(last); rank += step) {
    line("semithick", place(rank), axis, place(rank), axis - 6);
    node("south", place(rank), axis - 4, fmt::format("{}", rank));
  }
  node("south west", 1.02, axis - 4, "\\footnotesize average rank");
  if (has_scale(ranks)) {
    const double difference = ranks.ranking.ranks.critical_difference;
    const double end = place(1 + difference);
    line("|-|", 0, diagram.scale_y, end, diagram.scale_y);
    node("south", end / 2, diagram.scale_y, fmt::format("CD = {:.2f}", difference));
  }
  for (std::size_t at = 0; at < diagram.labels.size(); ++at) {
    const RankDiagram::Label& label = diagram.labels[at];
    const double x = place(average[at]);
    const double end = label.left ? -0.02 : 1.02;
    const std::string rank = fmt::format("{{\\footnotesize {:.2f}}}", average[at]);
    const std::string name = escaped_latex(ranks.variants[at].head.name);
    line("thin", x, axis, x, label.y);
    line("thin", x, label.y, end, label.y);
    node(label.left ? "east" : "west", end, label.y,
         label.left ? name + "\\enspace " + rank : rank + "\\enspace " + name);
  }
  for (const RankDiagram::Bar& bar : diagram.bars) {
    line("petlabA,line width=2pt", place(bar.from), bar.y, place(bar.to), bar.y);
    for (const std::size_t member : bar.members) {
      if (!diagram.has_dots) break;
      result += fmt::format("\\fill[petlabA] {} circle[radius=2.4pt];\n",
                            at_point(place(average[member]), bar.y));
    }
  }
  return result + "\\end{tikzpicture}\n";
}

std::string ranks_latex(const Ranks& ranks, const std::vector<std::string>& notes) {
  std::string result = "\\begin{figure}[p]\n\\centering\n";
  if (ranks.has_ranks()) {
    result += "\\begin{fitted}\n" + diagram_latex(ranks) + "\\end{fitted}\n";
  }
  return result + caption_latex(ranks.title, notes) + "\\end{figure}\n";
}

// True if the table would be unreadably small on an upright page.
bool is_wide(const Report& report) {
  return std::any_of(report.sections.begin(), report.sections.end(), [](const Section& section) {
    const auto* table = std::get_if<Table>(&section);
    return table != nullptr && table->columns.size() > 6;
  });
}

}  // namespace

std::string to_latex(const Report& report) {
  std::string text =
      "% Written by petlab. A document of its own; another takes it in with\n"
      "% \\usepackage{standalone} and \\input.\n"
      "\\documentclass{article}\n"
      "\\usepackage[utf8]{inputenc}\n"
      "\\usepackage{booktabs,graphicx,pgfplots}\n" +
      std::string(is_wide(report) ? "\\usepackage[a4paper,landscape,margin=12mm]{geometry}\n"
                                  : "") +
      "\\pgfplotsset{compat=1.16}\n\\setlength{\\tabcolsep}{4pt}\n"
      "\\definecolor{petlabA}{HTML}{0072B2}\\definecolor{petlabB}{HTML}{D55E00}\n"
      "\\definecolor{petlabC}{HTML}{009E73}\\definecolor{petlabD}{HTML}{CC79A7}\n"
      "\\definecolor{petlabE}{HTML}{E69F00}\\definecolor{petlabF}{HTML}{56B4E9}\n"
      "\\definecolor{petlabG}{HTML}{7F7F7F}\n"
      "\\providecommand{\\petlabhead}[1]{\\begin{tabular}[b]{@{}r@{}}#1\\end{tabular}}\n"
      "\\newsavebox{\\petlabbox}\n"
      "% Wider or higher than the page: made smaller.\n"
      "\\newenvironment{fitted}{\\begin{lrbox}{\\petlabbox}}{\\end{lrbox}%\n"
      "  \\ifdim\\wd\\petlabbox>\\linewidth\n"
      "    \\sbox{\\petlabbox}{\\resizebox{\\linewidth}{!}{\\usebox{\\petlabbox}}}\\fi%\n"
      "  \\ifdim\\dimexpr\\ht\\petlabbox+\\dp\\petlabbox\\relax>0.72\\textheight\n"
      "    \\resizebox*{!}{0.72\\textheight}{\\usebox{\\petlabbox}}%\n"
      "  \\else\\usebox{\\petlabbox}\\fi}\n"
      "\\newenvironment{tablenotes}{\\par\\medskip\\noindent\\begin{minipage}{\\linewidth}"
      "\\footnotesize\\raggedright\\setlength{\\parskip}{2pt}}{\\end{minipage}}\n"
      "\\begin{document}\n";
  const Section* before = nullptr;
  for (const Section& section : report.sections) {
    const bool only = report.sections.size() == 1;
    std::vector<std::string> notes;
    // LaTeX orders tables and figures separately, so a page break keeps the sections in order.
    if (before != nullptr && is_drawn(*before) != is_drawn(section)) text += "\\clearpage\n";
    before = &section;
    if (const auto* figure = std::get_if<Figure>(&section)) {
      notes = legend(*figure);
      const std::vector<std::string> errata = errata_of(*figure);
      notes.insert(notes.end(), errata.begin(), errata.end());
      if (only) notes.insert(notes.end(), report.notes.begin(), report.notes.end());
      text += figure_latex(*figure, notes);
      continue;
    }
    if (const auto* ranks = std::get_if<Ranks>(&section)) {
      notes = caption(*ranks);
      notes.insert(notes.end(), ranks->notes.begin(), ranks->notes.end());
      if (only) notes.insert(notes.end(), report.notes.begin(), report.notes.end());
      text += ranks_latex(*ranks, notes);
      continue;
    }
    Table table = std::get<Table>(section);
    if (table.title.empty()) table.title = report.about;
    notes = legend(table);
    if (only) notes.insert(notes.end(), report.notes.begin(), report.notes.end());
    text += TableWriter(table).text(notes);
  }
  // Notes of several sections belong to no single one.
  if (report.sections.size() > 1 && !report.notes.empty()) {
    text += "\\clearpage\n\\begin{tablenotes}\n";
    for (const std::string& note : report.notes) text += escaped_latex(note) + "\\par\n";
    text += "\\end{tablenotes}\n";
  }
  return text + "\\end{document}\n";
}

}  // namespace petlab::reports
