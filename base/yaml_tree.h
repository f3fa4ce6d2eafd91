#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file_problems.h"

namespace petlab::base {

/// A YAML value with its first line (from 1). Aliases are expanded.
struct YamlNode {
  enum class Kind { null, scalar, sequence, map };
  Kind kind = Kind::null;
  int line = 1;
  std::string text;             // scalar
  bool plain = false;           // scalar without quotes, so that 1 is a number and '1' is text
  std::vector<YamlNode> items;  // sequence; map: the values
  std::vector<std::pair<std::string, int>> keys;  // map: keys and their lines, unique

  bool is_null() const { return kind == Kind::null; }
  bool is_scalar() const { return kind == Kind::scalar; }
  bool is_map() const { return kind == Kind::map; }
  bool is_sequence() const { return kind == Kind::sequence; }
  /// The value of a key of a map, or nullptr.
  const YamlNode* find(std::string_view key) const;
};

/// Limits of file size in bytes, and of values after aliases are expanded.
inline constexpr std::size_t kMaxYamlBytes = 4 << 20;
inline constexpr std::size_t kMaxYamlNodes = 200'000;

/// Parses one YAML document. Adds to `problems`: syntax errors, invalid UTF-8, multiple documents,
/// keys that are not text, duplicate keys, unknown tags and too many values. The result then
/// contains the readable part.
YamlNode parse_yaml(std::string_view bytes, FileProblems& problems);

/// Converts a value to JSON by YAML 1.2's core schema (null, true, 1, 1e-4 and text; infinities and
/// NaN stay text), recursively.
nlohmann::json to_json(const YamlNode& node);

/// Formats a value for messages.
std::string shown(const YamlNode& node);

}  // namespace petlab::base
