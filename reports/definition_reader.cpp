#include "reports/definition_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <stdexcept>

#include "base/shown.h"
#include "questions/conditions.h"
#include "reports/derived.h"
#include "reports/selection.h"
#include "reports/words.h"
#include "sweeps/condition_text.h"

namespace petlab::reports {
namespace {

sweeps::WrittenValue written(const base::YamlNode& node) {
  if (node.is_null()) return {"null", false};
  return {node.text, !node.plain};
}

}  // namespace

void DefinitionReader::map(const base::YamlNode& node, const std::string& what,
                           const std::vector<std::string>& known, const ReadEntry& read) {
  if (!node.is_map()) {
    problem(node.line, fmt::format("{} is {}, must be a group of {}", what, base::shown(node),
                                   known.empty() ? "names and values" : joined(known)));
    return;
  }
  for (std::size_t i = 0; i < node.items.size(); ++i) {
    const auto& [key, line] = node.keys[i];
    if (known.empty() || std::find(known.begin(), known.end(), key) != known.end()) {
      read(key, node.items[i]);
    } else {
      problem(line, fmt::format("{} has no key {}{} (known: {})", what, base::in_quotes(key),
                                did_you_mean(key, known), joined(known)));
    }
  }
}

std::string DefinitionReader::text(const base::YamlNode& node, const std::string& what) {
  if (node.is_scalar() && !node.text.empty()) return node.text;
  problem(node.line, fmt::format("{} is {}, must be a text", what, base::shown(node)));
  return {};
}

std::vector<std::string> DefinitionReader::texts(const base::YamlNode& node,
                                                 const std::string& what) {
  if (!node.is_sequence()) return {text(node, what)};
  std::vector<std::string> all;
  for (const base::YamlNode& item : node.items) all.push_back(text(item, what));
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

std::string DefinitionReader::field(const base::YamlNode& node, const std::string& what) {
  const std::string name = text(node, what);
  return name.empty() ? name : named_field(name, node.line, what);
}

bool DefinitionReader::boolean(const base::YamlNode& node, const std::string& what) {
  if (node.is_scalar() && node.text == "true") return true;
  if (node.is_scalar() && node.text == "false") return false;
  problem(node.line, fmt::format("{} is {}, must be true or false", what, base::shown(node)));
  return false;
}

Selection DefinitionReader::selection(const base::YamlNode& node, const std::string& what) {
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
  if (node.is_scalar() && !node.text.empty()) {
    try {
      for (const sweeps::WrittenCondition& one : sweeps::parse_conditions(node.text, what)) {
        add(one, node.line);
      }
    } catch (const std::invalid_argument& error) {
      problem(node.line, error.what());
    }
    return read;
  }
  map(node, what, {}, [&](const std::string& field, const base::YamlNode& value) {
    sweeps::WrittenCondition condition{field, sweeps::Comparison::equal, {}};
    const int line = value.line;
    if (value.is_sequence()) {
      for (const base::YamlNode& item : value.items) {
        if (item.is_scalar() || item.is_null()) {
          condition.values.push_back(written(item));
        } else {
          problem(item.line,
                  fmt::format("{}.{} holds {}, must hold values", what, field, base::shown(item)));
        }
      }
      if (value.items.empty()) {
        problem(line, fmt::format("{}.{} is an empty list, which selects nothing", what, field));
      }
    } else if (value.is_scalar() || value.is_null()) {
      condition.values.push_back(written(value));
    } else {
      problem(line, fmt::format("{}.{} is {}, must be a value or a list of values", what, field,
                                base::shown(value)));
    }
    if (!condition.values.empty()) add(condition, line);
  });
  return read;
}

bool DefinitionReader::cell_field(CellSpec& cells, const std::string& key,
                                  const base::YamlNode& value, const std::string& what) {
  if (key == "value") {
    const bool examples = value.is_scalar() && value.text == kExamples;
    cells.value = examples ? kExamples : field(value, what + ".value");
  } else if (key == "text") {
    cells.text = renamed(text(value, what + ".text"), [&](const std::string& name) {
      return named_field(name, value.line, what + ".text");
    });
  } else if (key == "average_over") {
    if (!value.is_sequence() || value.items.empty()) {
      problem(value.line, fmt::format("{}.average_over is {}, must be a list of selections", what,
                                      base::shown(value)));
      return true;
    }
    for (const base::YamlNode& item : value.items) {
      cells.average_over.push_back(selection(item, what + ".average_over"));
    }
  } else if (key == "scale") {
    const auto scale = value.is_scalar() ? number_from<double>(value.text) : std::nullopt;
    if (!scale || !std::isfinite(*scale) || *scale == 0) {
      problem(value.line, fmt::format("{}.scale is {}, must be a number other than 0", what,
                                      base::shown(value)));
    }
    cells.scale = scale;
  } else if (key == "digits") {
    const auto digits = value.is_scalar() ? number_from<int>(value.text) : std::nullopt;
    if (!digits || *digits < 0 || *digits > 12) {
      problem(value.line, fmt::format("{}.digits is {}, must be a whole number from 0 to 12", what,
                                      base::shown(value)));
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

std::size_t DefinitionReader::one_of(const base::YamlNode& node, const std::string& what,
                                     const std::vector<std::string>& words) {
  const std::string word = node.is_scalar() ? node.text : std::string();
  const auto found = std::find(words.begin(), words.end(), word);
  if (found != words.end()) return static_cast<std::size_t>(found - words.begin());
  std::string wanted;
  for (std::size_t i = 0; i < words.size(); ++i) {
    wanted += (i == 0 ? "" : i + 1 == words.size() ? " or " : ", ") + words[i];
  }
  problem(node.line, fmt::format("{} is {}, must be {}", what, base::shown(node), wanted));
  return 0;
}

Line DefinitionReader::line(const base::YamlNode& node, const std::string& axis, const More& more) {
  Line read;
  read.line = node.line;
  read.cells.line = read.line;
  std::vector<std::string> known = {"key", "name", "where", "each"};
  known.insert(known.end(), more.keys.begin(), more.keys.end());
  known.insert(known.end(), cell_keys().begin(), cell_keys().end());
  map(node, "a " + axis, known, [&](const std::string& key, const base::YamlNode& value) {
    const std::string what = axis + "." + key;
    if (key == "key") {
      read.key = text(value, what);
    } else if (key == "name") {
      read.name = text(value, what);
    } else if (key == "where") {
      read.where = selection(value, what);
    } else if (key == "each") {
      if (!value.is_sequence()) {
        read.each = {field(value, what)};
        return;
      }
      for (const base::YamlNode& item : value.items) read.each.push_back(field(item, what));
    } else if (!cell_field(read.cells, key, value, axis)) {
      more.read(key, value);
    }
  });
  if (!node.is_map()) return read;
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

void DefinitionReader::lines(const base::YamlNode& node, const std::string& what,
                             const std::string& axis,
                             const std::function<const Line&(const base::YamlNode& item)>& read) {
  if (!node.is_sequence() || node.items.empty()) {
    problem(node.line, fmt::format("{} is {}, must be a list of {}s", what,
                                   node.is_sequence() ? "an empty list" : base::shown(node), axis));
    return;
  }
  std::map<std::string, int> keys;
  for (const base::YamlNode& item : node.items) {
    const Line& line = read(item);
    if (line.key.empty()) continue;
    const auto [place, is_new] = keys.emplace(line.key, line.line);
    if (!is_new) {
      problem(line.line, fmt::format("{} {} is also the key of line {}, keys must be unique", axis,
                                     line.key, place->second));
    }
  }
}

}  // namespace petlab::reports
