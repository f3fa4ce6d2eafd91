#include "reports/definition_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <stdexcept>

#include "questions/conditions.h"
#include "reports/derived.h"
#include "reports/selection.h"
#include "reports/words.h"
#include "sweeps/condition_text.h"

namespace petlab::reports {
namespace {

sweeps::WrittenValue written(const YAML::Node& node) {
  if (node.IsNull()) return {"null", false};
  return {node.Scalar(), node.Tag() == "!"};
}

}  // namespace

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

void DefinitionReader::problem(int line, const std::string& what) {
  problems.push_back(fmt::format("{}:{}: {}", file_, line, what));
}

void DefinitionReader::map(const YAML::Node& node, const std::string& what,
                           const std::vector<std::string>& known, const ReadEntry& read) {
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
      problem(line, fmt::format("{} has {} for a key, must be a word", what, kind_of(entry.first)));
    } else if (!seen.insert(key).second) {
      problem(line, fmt::format("{} has {} twice", what, key));
    } else {
      read(key, entry.second);
    }
  }
}

std::string DefinitionReader::text(const YAML::Node& node, const std::string& what) {
  if (node.IsScalar() && !node.Scalar().empty()) return node.Scalar();
  problem(line_of(node), fmt::format("{} is {}, must be a text", what, kind_of(node)));
  return {};
}

std::vector<std::string> DefinitionReader::texts(const YAML::Node& node, const std::string& what) {
  if (!node.IsSequence()) return {text(node, what)};
  std::vector<std::string> all;
  for (const YAML::Node& item : node) all.push_back(text(item, what));
  return all;
}

std::string DefinitionReader::named_field(const std::string& name, int line,
                                          const std::string& what) {
  try {
    return questions::field_named(name).name;
  } catch (const std::invalid_argument& error) {
    problem(line, fmt::format("{}: {}", what, error.what()));
    return name;
  }
}

std::string DefinitionReader::field(const YAML::Node& node, const std::string& what) {
  const std::string name = text(node, what);
  return name.empty() ? name : named_field(name, line_of(node), what);
}

bool DefinitionReader::boolean(const YAML::Node& node, const std::string& what) {
  if (node.IsScalar() && node.Scalar() == "true") return true;
  if (node.IsScalar() && node.Scalar() == "false") return false;
  problem(line_of(node), fmt::format("{} is {}, must be true or false", what, kind_of(node)));
  return false;
}

Selection DefinitionReader::selection(const YAML::Node& node, const std::string& what) {
  Selection read;
  const auto add = [&](const sweeps::WrittenCondition& condition, int line) {
    try {
      const results::Word word = questions::field_named(condition.word);
      if (is_derived(word.name)) {
        problem(line, fmt::format("{} has {}, which is computed for cells; no condition can use it",
                                  what, word.name));
        return;
      }
      read.conditions.push_back(questions::typed(condition, word));
      read.conditions.back().line = line;
    } catch (const std::invalid_argument& error) {
      problem(line, fmt::format("{}: {}", what, error.what()));
    }
  };
  if (node.IsScalar() && !node.Scalar().empty()) {
    try {
      for (const sweeps::WrittenCondition& one : sweeps::parse_conditions(node.Scalar(), what)) {
        add(one, line_of(node));
      }
    } catch (const std::invalid_argument& error) {
      problem(line_of(node), error.what());
    }
    return read;
  }
  map(node, what, {}, [&](const std::string& field, const YAML::Node& value) {
    sweeps::WrittenCondition condition{field, sweeps::Comparison::equal, {}};
    const int line = line_of(value);
    if (value.IsSequence()) {
      for (const YAML::Node& item : value) {
        if (item.IsScalar() || item.IsNull()) {
          condition.values.push_back(written(item));
        } else {
          problem(line_of(item),
                  fmt::format("{}.{} holds {}, must hold values", what, field, kind_of(item)));
        }
      }
      if (value.size() == 0) {
        problem(line, fmt::format("{}.{} is an empty list, which selects nothing", what, field));
      }
    } else if (value.IsScalar() || value.IsNull()) {
      condition.values.push_back(written(value));
    } else {
      problem(line, fmt::format("{}.{} is {}, must be a value or a list of values", what, field,
                                kind_of(value)));
    }
    if (!condition.values.empty()) add(condition, line);
  });
  return read;
}

bool DefinitionReader::cell_field(CellSpec& cells, const std::string& key, const YAML::Node& value,
                                  const std::string& what) {
  if (key == "value") {
    const bool examples = value.IsScalar() && value.Scalar() == kExamples;
    cells.value = examples ? kExamples : field(value, what + ".value");
  } else if (key == "text") {
    cells.text = renamed(text(value, what + ".text"), [&](const std::string& name) {
      return named_field(name, line_of(value), what + ".text");
    });
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
    constexpr Better kWays[] = {Better::higher, Better::lower, Better::none};
    cells.better = kWays[one_of(value, what + ".better", {"higher", "lower", "none"})];
  } else {
    return false;
  }
  return true;
}

void DefinitionReader::check_cells(const CellSpec& cells, const std::string& what) {
  const int ways =
      (cells.value ? 1 : 0) + (cells.text ? 1 : 0) + (cells.average_over.empty() ? 0 : 1);
  if (ways > 1) {
    problem(cells.line, what +
                            " has more than one of value, text and average_over; a cell shows "
                            "one of them");
  }
}

const std::vector<std::string>& DefinitionReader::cell_keys() {
  static const std::vector<std::string> keys = {"value", "text",   "average_over",
                                                "scale", "digits", "better"};
  return keys;
}

std::size_t DefinitionReader::one_of(const YAML::Node& node, const std::string& what,
                                     const std::vector<std::string>& words) {
  const std::string word = node.IsScalar() ? node.Scalar() : std::string();
  const auto found = std::find(words.begin(), words.end(), word);
  if (found != words.end()) return static_cast<std::size_t>(found - words.begin());
  std::string wanted;
  for (std::size_t i = 0; i < words.size(); ++i) {
    wanted += (i == 0 ? "" : i + 1 == words.size() ? " or " : ", ") + words[i];
  }
  problem(line_of(node), fmt::format("{} is {}, must be {}", what, kind_of(node), wanted));
  return 0;
}

Line DefinitionReader::line(const YAML::Node& node, const std::string& axis, const More& more) {
  Line read;
  read.line = line_of(node);
  read.cells.line = read.line;
  std::vector<std::string> known = {"key", "name", "where", "each"};
  known.insert(known.end(), more.keys.begin(), more.keys.end());
  known.insert(known.end(), cell_keys().begin(), cell_keys().end());
  map(node, "a " + axis, known, [&](const std::string& key, const YAML::Node& value) {
    const std::string what = axis + "." + key;
    if (key == "key") {
      read.key = text(value, what);
    } else if (key == "name") {
      read.name = text(value, what);
    } else if (key == "where") {
      read.where = selection(value, what);
    } else if (key == "each") {
      if (!value.IsSequence()) {
        read.each = {field(value, what)};
        return;
      }
      for (const YAML::Node& item : value) read.each.push_back(field(item, what));
    } else if (!cell_field(read.cells, key, value, axis)) {
      more.read(key, value);
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

void DefinitionReader::lines(const YAML::Node& node, const std::string& what,
                             const std::string& axis,
                             const std::function<const Line&(const YAML::Node& item)>& read) {
  if (!node.IsSequence() || node.size() == 0) {
    problem(line_of(node), fmt::format("{} is {}, must be a list of {}s", what,
                                       node.IsSequence() ? "an empty list" : kind_of(node), axis));
    return;
  }
  std::map<std::string, int> keys;
  for (const YAML::Node& item : node) {
    const Line& made = read(item);
    if (made.key.empty()) continue;
    const auto [place, is_new] = keys.emplace(made.key, made.line);
    if (!is_new) {
      problem(made.line, fmt::format("{} {} is also the key of line {}, keys must be unique", axis,
                                     made.key, place->second));
    }
  }
}

}  // namespace petlab::reports
