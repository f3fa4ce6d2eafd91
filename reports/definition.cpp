#include "reports/definition.h"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>

#include "reports/words.h"

namespace petlab::reports {
namespace {

std::string all_lines(const std::vector<std::string>& problems) {
  std::string all;
  for (const std::string& problem : problems) all += (all.empty() ? "" : "\n") + problem;
  return all;
}

std::string kind_of(const YAML::Node& node) {
  switch (node.Type()) {
    case YAML::NodeType::Scalar:
      return "'" + node.Scalar() + "'";
    case YAML::NodeType::Sequence:
      return "a list";
    case YAML::NodeType::Map:
      return "a map";
    default:
      return "nothing";
  }
}

template <typename Number>
std::optional<Number> number_from(const std::string& text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// YAML's scalars as the database stores them: SQLite has no booleans, the views hold 0 and 1.
results::Value value_of(const YAML::Node& node) {
  if (node.IsNull()) return std::monostate();
  const std::string& text = node.Scalar();
  if (node.Tag() == "!") return text;  // quoted
  if (text == "true") return std::int64_t{1};
  if (text == "false") return std::int64_t{0};
  if (const auto whole = number_from<std::int64_t>(text)) return *whole;
  if (const auto real = number_from<double>(text); real && std::isfinite(*real)) return *real;
  return text;
}

// Walks the document and keeps every problem instead of stopping at the first.
class Reader {
 public:
  explicit Reader(std::string file) : file_(std::move(file)) {}

  std::vector<std::string> problems;

  void problem(int line, const std::string& what) {
    problems.push_back(fmt::format("{}:{}: {}", file_, line, what));
  }
  static int line_of(const YAML::Node& node) { return node.Mark().line + 1; }

  // Calls `field(key, value)` for each entry of a map, which says whether it knows the key.
  template <typename Field>
  void map(const YAML::Node& node, const std::string& what, const std::vector<std::string>& known,
           Field field) {
    if (!node.IsMap()) {
      problem(line_of(node), fmt::format("{} is {}, must be a map of {}", what, kind_of(node),
                                         known.empty() ? "names and values" : joined(known)));
      return;
    }
    std::set<std::string> seen;
    for (const auto& entry : node) {
      const std::string key = entry.first.IsScalar() ? entry.first.Scalar() : std::string();
      const int line = line_of(entry.first);
      if (!known.empty() && std::find(known.begin(), known.end(), key) == known.end()) {
        problem(line, fmt::format("{} has no key {}{} (known: {})", what,
                                  key.empty() ? kind_of(entry.first) : "'" + key + "'",
                                  did_you_mean(key, known), joined(known)));
      } else if (key.empty()) {
        problem(line,
                fmt::format("{} has {} for a key, must be a word", what, kind_of(entry.first)));
      } else if (!seen.insert(key).second) {
        problem(line, fmt::format("{} has {} twice", what, key));
      } else {
        field(key, entry.second);
      }
    }
  }

  std::string text(const YAML::Node& node, const std::string& what) {
    if (node.IsScalar() && !node.Scalar().empty()) return node.Scalar();
    problem(line_of(node), fmt::format("{} is {}, must be a text", what, kind_of(node)));
    return {};
  }

  std::vector<std::string> texts(const YAML::Node& node, const std::string& what) {
    if (!node.IsSequence()) return {text(node, what)};
    std::vector<std::string> all;
    for (const YAML::Node& item : node) all.push_back(text(item, what));
    return all;
  }

  bool boolean(const YAML::Node& node, const std::string& what) {
    if (node.IsScalar() && node.Scalar() == "true") return true;
    if (node.IsScalar() && node.Scalar() == "false") return false;
    problem(line_of(node), fmt::format("{} is {}, must be true or false", what, kind_of(node)));
    return false;
  }

  Selection selection(const YAML::Node& node, const std::string& what) {
    Selection read;
    map(node, what, {}, [&](const std::string& field, const YAML::Node& value) {
      Condition condition{field, {}, line_of(value)};
      if (value.IsSequence()) {
        for (const YAML::Node& item : value) {
          if (item.IsScalar() || item.IsNull()) {
            condition.any_of.push_back(value_of(item));
          } else {
            problem(line_of(item),
                    fmt::format("{}.{} holds {}, must hold values", what, field, kind_of(item)));
          }
        }
        if (value.size() == 0) {
          problem(line_of(value),
                  fmt::format("{}.{} is an empty list, which selects nothing", what, field));
        }
      } else if (value.IsScalar() || value.IsNull()) {
        condition.any_of.push_back(value_of(value));
      } else {
        problem(line_of(value), fmt::format("{}.{} is {}, must be a value or a list of values",
                                            what, field, kind_of(value)));
      }
      read.conditions.push_back(std::move(condition));
    });
    return read;
  }

  // One of the keys of a CellSpec; false for another key.
  bool cell_field(CellSpec& cells, const std::string& key, const YAML::Node& value,
                  const std::string& what) {
    if (key == "value") {
      cells.value = text(value, what + ".value");
    } else if (key == "text") {
      cells.text = text(value, what + ".text");
    } else if (key == "average_over") {
      if (!value.IsSequence() || value.size() == 0) {
        problem(line_of(value), fmt::format("{}.average_over is {}, must be a list of selections",
                                            what, kind_of(value)));
        return true;
      }
      for (const YAML::Node& item : value) {
        cells.average_over.push_back(selection(item, what + ".average_over"));
      }
    } else if (key == "scale") {
      const auto scale = value.IsScalar() ? number_from<double>(value.Scalar()) : std::nullopt;
      if (!scale || !std::isfinite(*scale) || *scale == 0) {
        problem(line_of(value),
                fmt::format("{}.scale is {}, must be a number other than 0", what, kind_of(value)));
      }
      cells.scale = scale;
    } else if (key == "digits") {
      const auto digits = value.IsScalar() ? number_from<int>(value.Scalar()) : std::nullopt;
      if (!digits || *digits < 0 || *digits > 12) {
        problem(line_of(value), fmt::format("{}.digits is {}, must be a whole number from 0 to 12",
                                            what, kind_of(value)));
      }
      cells.digits = digits;
    } else if (key == "better") {
      const std::string word = value.IsScalar() ? value.Scalar() : std::string();
      if (word == "higher") {
        cells.better = Better::higher;
      } else if (word == "lower") {
        cells.better = Better::lower;
      } else if (word == "none") {
        cells.better = Better::none;
      } else {
        problem(line_of(value), fmt::format("{}.better is {}, must be higher, lower or none", what,
                                            kind_of(value)));
      }
    } else {
      return false;
    }
    return true;
  }

  void check_cells(const CellSpec& cells, const std::string& what) {
    const int ways =
        (cells.value ? 1 : 0) + (cells.text ? 1 : 0) + (cells.average_over.empty() ? 0 : 1);
    if (ways > 1) {
      problem(cells.line, what +
                              " has more than one of value, text and average_over; a cell shows "
                              "one of them");
    }
  }

  static const std::vector<std::string>& cell_keys() {
    static const std::vector<std::string> keys = {"value", "text",   "average_over",
                                                  "scale", "digits", "better"};
    return keys;
  }

  Line line(const YAML::Node& node, const std::string& axis) {
    Line read;
    read.line = line_of(node);
    read.cells.line = read.line;
    const bool is_row = axis == "row";
    std::vector<std::string> known = {"key", "name", "where", "each", "published"};
    if (is_row) known.insert(known.end(), {"group", "separate"});
    known.insert(known.end(), cell_keys().begin(), cell_keys().end());
    map(node, "a " + axis, known, [&](const std::string& key, const YAML::Node& value) {
      const std::string what = axis + "." + key;
      if (key == "key") {
        read.key = text(value, what);
      } else if (key == "name") {
        read.name = text(value, what);
      } else if (key == "group") {
        read.group = text(value, what);
      } else if (key == "where") {
        read.where = selection(value, what);
      } else if (key == "each") {
        read.each = texts(value, what);
      } else if (key == "separate") {
        read.separate = boolean(value, what);
      } else if (key == "published") {
        read.published = text(value, what);
      } else {
        cell_field(read.cells, key, value, axis);
      }
    });
    if (!node.IsMap()) return read;
    if (read.key.empty() && read.each.empty()) {
      problem(read.line, fmt::format("a {} has neither key nor each, must have one", axis));
    }
    if (!read.key.empty() && !read.each.empty()) {
      problem(read.line, fmt::format("{} {} has both key and each; each makes the keys of its {}s",
                                     axis, read.key, axis));
    }
    if (read.name.empty() && read.each.empty()) read.name = read.key;
    check_cells(read.cells, read.key.empty() ? "a " + axis : axis + " " + read.key);
    return read;
  }

  std::vector<Line> lines(const YAML::Node& node, const std::string& axis) {
    std::vector<Line> read;
    if (!node.IsSequence() || node.size() == 0) {
      problem(line_of(node),
              fmt::format("table.{}s is {}, must be a list of {}s", axis,
                          node.IsSequence() ? "an empty list" : kind_of(node), axis));
      return read;
    }
    std::map<std::string, int> keys;
    for (const YAML::Node& item : node) {
      read.push_back(line(item, axis));
      const Line& made = read.back();
      if (made.key.empty()) continue;
      const auto [place, is_new] = keys.emplace(made.key, made.line);
      if (!is_new) {
        problem(made.line, fmt::format("{} {} is also the key of line {}, keys must be unique",
                                       axis, made.key, place->second));
      }
    }
    return read;
  }

  TableSpec table(const YAML::Node& node) {
    TableSpec read;
    bool has_rows = false;
    bool has_columns = false;
    map(node, "table", {"rows", "columns", "cells", "best", "published"},
        [&](const std::string& key, const YAML::Node& value) {
          if (key == "rows") {
            has_rows = true;
            read.rows = lines(value, "row");
          } else if (key == "columns") {
            has_columns = true;
            read.columns = lines(value, "column");
          } else if (key == "best") {
            const std::string word = value.IsScalar() ? value.Scalar() : std::string();
            read.best_of_row = word == "row";
            if (word != "row" && word != "column") {
              problem(line_of(value),
                      fmt::format("table.best is {}, must be row or column", kind_of(value)));
            }
          } else if (key == "published") {
            read.published = text(value, "table.published");
            read.published_line = line_of(value);
          } else {
            read.cells.line = line_of(value);
            map(value, "table.cells", cell_keys(),
                [&](const std::string& name, const YAML::Node& setting) {
                  cell_field(read.cells, name, setting, "table.cells");
                });
            check_cells(read.cells, "table.cells");
          }
        });
    if (!node.IsMap()) return read;
    if (!has_rows) problem(line_of(node), "table has no rows");
    if (!has_columns) problem(line_of(node), "table has no columns");
    return read;
  }

  Definition definition(const YAML::Node& node) {
    Definition read;
    read.file = file_;
    bool has_table = false;
    map(node, "the report",
        {"report", "about", "sweep", "where", "backbone_parameters", "notes", "table"},
        [&](const std::string& key, const YAML::Node& value) {
          if (key == "report") {
            read.name = text(value, "report");
            if (read.name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                            "0123456789_-.") != std::string::npos ||
                read.name.starts_with('.')) {
              problem(line_of(value),
                      fmt::format("report is '{}', must be a name of letters, digits, _, - and . "
                                  "(files are named after it)",
                                  read.name));
            }
          } else if (key == "about") {
            read.about = text(value, "about");
          } else if (key == "sweep") {
            read.sweeps = texts(value, "sweep");
          } else if (key == "where") {
            read.where = selection(value, "where");
          } else if (key == "notes") {
            read.notes = texts(value, "notes");
          } else if (key == "table") {
            has_table = true;
            read.table = table(value);
          } else {
            map(value, "backbone_parameters", {},
                [&](const std::string& backbone, const YAML::Node& count) {
                  const auto number =
                      count.IsScalar() ? number_from<std::int64_t>(count.Scalar()) : std::nullopt;
                  if (!number || *number <= 0) {
                    problem(line_of(count),
                            fmt::format("backbone_parameters.{} is {}, must be a whole number > 0",
                                        backbone, kind_of(count)));
                  } else {
                    read.backbone_parameters[backbone] = *number;
                  }
                });
          }
        });
    if (!node.IsMap()) return read;
    if (read.name.empty() && !node["report"]) problem(1, "there is no key 'report' with its name");
    if (!has_table) problem(1, "there is no key 'table'");
    return read;
  }

 private:
  std::string file_;
};

}  // namespace

DefinitionError::DefinitionError(std::vector<std::string> problems)
    : std::invalid_argument(all_lines(problems)), problems_(std::move(problems)) {}

Definition parse_definition(const std::string& text, const std::string& file) {
  Reader reader(file);
  Definition definition;
  try {
    const std::vector<YAML::Node> documents = YAML::LoadAll(text);
    if (documents.size() != 1) {
      reader.problem(
          1, fmt::format("the file holds {} YAML documents, must hold one", documents.size()));
    } else {
      definition = reader.definition(documents.front());
    }
  } catch (const YAML::Exception& error) {
    reader.problem(std::max(0, error.mark.line) + 1, "this is no YAML: " + error.msg);
  }
  if (!reader.problems.empty()) throw DefinitionError(std::move(reader.problems));
  return definition;
}

}  // namespace petlab::reports
