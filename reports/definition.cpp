#include "reports/definition.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>

#include "reports/definition_reader.h"
#include "reports/words.h"

namespace petlab::reports {
namespace {

bool is_file_name(const std::string& name) {
  return name.find_first_not_of(
             "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
             "0123456789_-.") == std::string::npos &&
         !name.starts_with('.');
}

// Reads a name that output files are named after.
std::string file_name(DefinitionReader& reader, const base::YamlNode& node,
                      const std::string& what) {
  const std::string name = reader.text(node, what);
  if (!is_file_name(name)) {
    reader.problem(node.line,
                   fmt::format("{} is '{}', must be a name of letters, digits, _, - and . "
                               "(files are named after it)",
                               what, name));
  }
  return name;
}

Spread read_spread(DefinitionReader& reader, const base::YamlNode& node, const std::string& what) {
  constexpr Spread kSpreads[] = {Spread::deviation, Spread::standard_error, Spread::interval,
                                 Spread::none};
  return kSpreads[reader.one_of(node, what, {"deviation", "standard_error", "interval", "none"})];
}

void read_cells(DefinitionReader& reader, const base::YamlNode& node, CellSpec& cells) {
  cells.line = node.line;
  reader.map(node, "table.cells", DefinitionReader::cell_keys(),
             [&](const std::string& name, const base::YamlNode& setting) {
               reader.cell_field(cells, name, setting, "table.cells");
             });
  reader.check_cells(cells, "table.cells");
}

std::vector<Line> read_axis(DefinitionReader& reader, const base::YamlNode& node,
                            const std::string& axis) {
  std::vector<Line> all;
  reader.lines(node, "table." + axis + "s", axis, [&](const base::YamlNode& item) -> const Line& {
    Line read;
    DefinitionReader::More more;
    more.keys = {"published"};
    if (axis == "row") more.keys.insert(more.keys.end(), {"group", "separate"});
    if (axis == "column") more.keys.emplace_back("relative_to");
    more.read = [&](const std::string& key, const base::YamlNode& value) {
      const std::string what = axis + "." + key;
      if (key == "group") {
        read.group = reader.text(value, what);
      } else if (key == "separate") {
        read.separate = reader.boolean(value, what);
      } else if (key == "relative_to") {
        read.relative_to = reader.text(value, what);
      } else {
        read.published = reader.text(value, what);
      }
    };
    Line added = reader.line(item, axis, more);
    added.group = read.group;
    added.separate = read.separate;
    added.published = read.published;
    added.relative_to = read.relative_to;
    all.push_back(std::move(added));
    return all.back();
  });
  return all;
}

// Checks that `key` is one of `lines`. Keys of lines with `each` come from the data.
void check_key(DefinitionReader& reader, const std::vector<Line>& lines, const std::string& key,
               const std::string& what, const std::string& axis, int at) {
  if (key.empty()) return;
  std::vector<std::string> keys;
  for (const Line& line : lines) {
    if (line.key.empty() || line.key == key) return;
    keys.push_back(line.key);
  }
  reader.problem(at, fmt::format("{} is '{}', must be the key of a {}{} (known: {})", what, key,
                                 axis, did_you_mean(key, keys), joined(keys)));
}

TableSpec read_table(DefinitionReader& reader, const base::YamlNode& node) {
  TableSpec read;
  bool has_rows = false;
  bool has_columns = false;
  reader.map(node, "table",
             {"rows", "columns", "cells", "best", "published", "key", "title", "against", "first",
              "errors"},
             [&](const std::string& key, const base::YamlNode& value) {
               if (key == "rows") {
                 has_rows = true;
                 read.rows = read_axis(reader, value, "row");
               } else if (key == "columns") {
                 has_columns = true;
                 read.columns = read_axis(reader, value, "column");
               } else if (key == "best") {
                 read.best_of_row = reader.one_of(value, "table.best", {"row", "column"}) == 0;
               } else if (key == "published") {
                 read.published = reader.text(value, "table.published");
                 read.published_line = value.line;
               } else if (key == "first") {
                 read.column_first = reader.one_of(value, "table.first", {"row", "column"}) == 1;
               } else if (key == "errors") {
                 read.errors = read_spread(reader, value, "table.errors");
               } else if (key == "against") {
                 read.against = reader.text(value, "table.against");
                 read.against_line = value.line;
               } else if (key == "key") {
                 read.key = file_name(reader, value, "table.key");
               } else if (key == "title") {
                 read.title = reader.text(value, "table.title");
               } else {
                 read_cells(reader, value, read.cells);
               }
             });
  if (!node.is_map()) return read;
  const int line = node.line;
  if (!has_rows) reader.problem(line, "table has no rows");
  if (!has_columns) reader.problem(line, "table has no columns");
  check_key(reader, read.best_of_row ? read.columns : read.rows, read.against, "table.against",
            read.best_of_row ? "column" : "row", read.against_line);
  for (const Line& column : read.columns) {
    check_key(reader, read.rows, column.relative_to, "column.relative_to", "row", column.line);
  }
  return read;
}

PublishedPoints read_points(DefinitionReader& reader, const base::YamlNode& node, bool wants_x) {
  PublishedPoints read;
  read.line = node.line;
  const std::string what = "published";
  bool has_x = false;
  reader.map(node, what, {"table", "row", "rows", "x", "y"},
             [&](const std::string& key, const base::YamlNode& value) {
               const std::string text = reader.text(value, what + "." + key);
               if (key == "table") {
                 read.table = text;
               } else if (key == "row") {
                 read.row = text;
               } else if (key == "rows") {
                 read.rows = text;
               } else if (key == "y") {
                 read.y = text;
               } else {
                 has_x = true;
                 const auto number = number_from<double>(text);
                 if (number && std::isfinite(*number)) {
                   read.x = *number;
                 } else {
                   read.x = text;
                 }
               }
             });
  if (!node.is_map()) return read;
  if (read.table.empty()) reader.problem(read.line, "published has no table");
  if (read.row.empty() == read.rows.empty()) {
    reader.problem(read.line,
                   "published must have either row (its key) or rows (with what their keys begin)");
  }
  if (read.y.empty()) reader.problem(read.line, "published has no y, the column of its value");
  if (wants_x && !has_x) {
    reader.problem(read.line, "published has no x, the column of its place or a number");
  }
  return read;
}

std::vector<SeriesSpec> read_series(DefinitionReader& reader, const base::YamlNode& node,
                                    const std::string& what) {
  std::vector<SeriesSpec> all;
  reader.lines(node, "figure." + what, what, [&](const base::YamlNode& item) -> const Line& {
    std::vector<PublishedPoints> points;
    DefinitionReader::More more;
    more.keys = {"published"};
    more.read = [&](const std::string&, const base::YamlNode& value) {
      if (value.is_sequence()) {
        for (const base::YamlNode& one : value.items)
          points.push_back(read_points(reader, one, what == "series"));
      } else {
        points.push_back(read_points(reader, value, what == "series"));
      }
    };
    all.push_back({reader.line(item, what, more), {}});
    all.back().published = std::move(points);
    return all.back().line;
  });
  return all;
}

FigureAxis read_figure_axis(DefinitionReader& reader, const base::YamlNode& node,
                            const std::string& what) {
  FigureAxis read;
  read.line = node.line;
  read.cells.line = read.line;
  const bool is_x = what == "figure.x";
  std::vector<std::string> known = {"name", "log", "value", "scale"};
  if (!is_x) known = {"name", "log", "where", "value", "average_over", "scale", "digits", "better"};
  reader.map(node, what, known, [&](const std::string& key, const base::YamlNode& value) {
    if (key == "name") {
      read.name = reader.text(value, what + ".name");
    } else if (key == "log") {
      read.log = reader.boolean(value, what + ".log");
    } else if (key == "where") {
      read.where = reader.selection(value, what + ".where");
    } else {
      reader.cell_field(read.cells, key, value, what);
    }
  });
  if (!node.is_map()) return read;
  if (is_x && !read.cells.value) {
    reader.problem(read.line, "figure.x has no value: a field of the trials, or step");
  }
  reader.check_cells(read.cells, what);
  return read;
}

FigureSpec read_figure(DefinitionReader& reader, const base::YamlNode& node) {
  FigureSpec read;
  std::set<std::string> seen;
  reader.map(node, "figure", {"x", "y", "series", "horizontal", "errors", "key", "title"},
             [&](const std::string& key, const base::YamlNode& value) {
               seen.insert(key);
               if (key == "x") {
                 read.x = read_figure_axis(reader, value, "figure.x");
               } else if (key == "y") {
                 read.y = read_figure_axis(reader, value, "figure.y");
               } else if (key == "series") {
                 read.series = read_series(reader, value, "series");
               } else if (key == "horizontal") {
                 read.horizontal = read_series(reader, value, "horizontal");
               } else if (key == "errors") {
                 read.errors = read_spread(reader, value, "figure.errors");
               } else if (key == "key") {
                 read.key = file_name(reader, value, "figure.key");
               } else {
                 read.title = reader.text(value, "figure.title");
               }
             });
  if (!node.is_map()) return read;
  for (const char* needed : {"x", "y", "series"}) {
    if (!seen.contains(needed)) {
      reader.problem(node.line, fmt::format("figure has no {}", needed));
    }
  }
  return read;
}

// Reads variants or tasks of a ranking.
std::vector<Line> read_ranked(DefinitionReader& reader, const base::YamlNode& node,
                              const std::string& what) {
  std::vector<Line> all;
  reader.lines(node, "ranks." + what + "s", what, [&](const base::YamlNode& item) -> const Line& {
    all.push_back(reader.line(item, what));
    if (all.back().cells.text) {
      reader.problem(item.line, fmt::format("{}.text is a text, which has no rank; use value or "
                                            "average_over, or neither for a metric",
                                            what));
    }
    return all.back();
  });
  return all;
}

RanksSpec read_ranks(DefinitionReader& reader, const base::YamlNode& node) {
  constexpr double kHighestLevel = 0.5;
  constexpr PairTest kTests[] = {PairTest::nemenyi, PairTest::wilcoxon};
  RanksSpec read;
  std::set<std::string> seen;
  reader.map(node, "ranks", {"variants", "tasks", "test", "level", "key", "title"},
             [&](const std::string& key, const base::YamlNode& value) {
               seen.insert(key);
               if (key == "variants") {
                 read.variants = read_ranked(reader, value, "variant");
               } else if (key == "tasks") {
                 read.tasks = read_ranked(reader, value, "task");
               } else if (key == "test") {
                 read.test = kTests[reader.one_of(value, "ranks.test", {"nemenyi", "wilcoxon"})];
               } else if (key == "level") {
                 const auto level =
                     value.is_scalar() ? number_from<double>(value.text) : std::nullopt;
                 if (level && *level > 0 && *level <= kHighestLevel) {
                   read.level = *level;
                 } else {
                   reader.problem(value.line,
                                  fmt::format("ranks.level is {}, must be a number above 0 and at "
                                              "most {}",
                                              base::shown(value), kHighestLevel));
                 }
               } else if (key == "key") {
                 read.key = file_name(reader, value, "ranks.key");
               } else {
                 read.title = reader.text(value, "ranks.title");
               }
             });
  if (!node.is_map()) return read;
  for (const char* needed : {"variants", "tasks"}) {
    if (!seen.contains(needed)) reader.problem(node.line, fmt::format("ranks has no {}", needed));
  }
  return read;
}

const std::vector<std::string>& section_kinds() {
  static const std::vector<std::string> kinds = {"table", "figure", "ranks"};
  return kinds;
}

SectionSpec read_section(DefinitionReader& reader, const std::string& kind,
                         const base::YamlNode& node) {
  if (kind == "table") return read_table(reader, node);
  if (kind == "figure") return read_figure(reader, node);
  return read_ranks(reader, node);
}

std::vector<SectionSpec> read_sections(DefinitionReader& reader, const base::YamlNode& node) {
  std::vector<SectionSpec> all;
  if (!node.is_sequence() || node.items.empty()) {
    reader.problem(node.line, fmt::format("sections is {}, must be a list of sections ({})",
                                          node.is_sequence() ? "an empty list" : base::shown(node),
                                          joined(section_kinds())));
    return all;
  }
  std::map<std::string, int> keys;
  for (const base::YamlNode& item : node.items) {
    const int line = item.line;
    std::vector<std::string> parts;
    reader.map(item, "a section", section_kinds(),
               [&](const std::string& kind, const base::YamlNode& value) {
                 parts.push_back(kind);
                 all.push_back(read_section(reader, kind, value));
               });
    if (parts.size() > 1 || (item.is_map() && item.items.empty())) {
      reader.problem(
          line, fmt::format("a section has {}, must have one of {}",
                            parts.empty() ? "no key" : joined(parts), joined(section_kinds())));
    }
    if (parts.empty()) continue;
    const std::string key = std::visit([](const auto& spec) { return spec.key; }, all.back());
    if (key.empty() && node.items.size() > 1) {
      reader.problem(line, "a section has no key, must have one where there are several");
    }
    if (const auto [place, is_new] = keys.emplace(key, line); !is_new && !key.empty()) {
      reader.problem(line, fmt::format("section {} is also the key of line {}, keys must be unique",
                                       key, place->second));
    }
  }
  return all;
}

void read_parameters(DefinitionReader& reader, const base::YamlNode& node, Definition& read) {
  reader.map(node, "backbone_parameters", {},
             [&](const std::string& backbone, const base::YamlNode& count) {
               const auto number = count.is_scalar() ? number_from<std::int64_t>(count.text)
                                                     : std::optional<std::int64_t>();
               if (!number || *number <= 0) {
                 reader.problem(
                     count.line,
                     fmt::format("backbone_parameters.{} is {}, must be a whole number > 0",
                                 backbone, base::shown(count)));
               } else {
                 read.backbone_parameters[backbone] = *number;
               }
             });
}

Definition read_definition(DefinitionReader& reader, const base::YamlNode& node,
                           const std::string& file) {
  Definition read;
  read.file = file;
  std::vector<std::string> known = {"report", "about", "sweep", "where", "backbone_parameters",
                                    "notes"};
  std::vector<std::string> contents = section_kinds();
  contents.emplace_back("sections");
  known.insert(known.end(), contents.begin(), contents.end());
  std::vector<std::string> parts;  // those present of `contents`
  reader.map(node, "the report", known, [&](const std::string& key, const base::YamlNode& value) {
    if (key == "report") {
      read.name = file_name(reader, value, "report");
    } else if (key == "about") {
      read.about = reader.text(value, "about");
    } else if (key == "sweep") {
      read.sweeps = reader.texts(value, "sweep");
    } else if (key == "where") {
      read.where = reader.selection(value, "where");
    } else if (key == "notes") {
      read.notes = reader.texts(value, "notes");
    } else if (key == "backbone_parameters") {
      read_parameters(reader, value, read);
    } else {
      parts.push_back(key);
      if (key == "sections") {
        read.sections = read_sections(reader, value);
      } else {
        read.sections.push_back(read_section(reader, key, value));
      }
    }
  });
  if (!node.is_map()) return read;
  if (read.name.empty() && node.find("report") == nullptr) {
    reader.problem(1, "there is no key 'report' with its name");
  }
  if (parts.empty()) {
    reader.problem(1, "there is no key 'table', 'figure', 'ranks' or 'sections'");
  }
  if (parts.size() > 1) {
    reader.problem(1, fmt::format("there are the keys {}, must be one; sections is a list of them",
                                  fmt::join(parts, " and ")));
  }
  return read;
}

}  // namespace

Definition parse_definition(const std::string& text, const std::string& file) {
  base::FileProblems problems(file);
  const base::YamlNode root = base::parse_yaml(text, problems);
  Definition definition;
  if (root.is_map() || problems.empty()) {
    DefinitionReader reader(problems);
    definition = read_definition(reader, root, file);
  }
  problems.throw_if_any();
  return definition;
}

}  // namespace petlab::reports
