#pragma once

#include <charconv>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/file_problems.h"
#include "base/yaml_tree.h"
#include "reports/definition.h"

namespace petlab::reports {

/// Parses the whole text as a number; std::nullopt if that fails.
template <typename Number>
std::optional<Number> number_from(const std::string& text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

/// Reads the parts of definitions. Collects all problems instead of stopping at the first.
class DefinitionReader {
 public:
  explicit DefinitionReader(base::FileProblems& problems) : problems_(problems) {}

  void problem(int line, const std::string& what) { problems_.add_text(line, what); }

  using ReadEntry = std::function<void(const std::string& key, const base::YamlNode& value)>;
  /// Calls `read` for each entry of a map whose key is in `known` (any key if `known` is empty).
  void map(const base::YamlNode& node, const std::string& what,
           const std::vector<std::string>& known, const ReadEntry& read);
  std::string text(const base::YamlNode& node, const std::string& what);
  /// Reads a text or a list of texts.
  std::vector<std::string> texts(const base::YamlNode& node, const std::string& what);
  /// Reads the name of a field (questions::field_named()).
  std::string field(const base::YamlNode& node, const std::string& what);
  bool boolean(const base::YamlNode& node, const std::string& what);
  /// Reads one of `words` and returns its index; 0 if it is none of them.
  std::size_t one_of(const base::YamlNode& node, const std::string& what,
                     const std::vector<std::string>& words);
  Selection selection(const base::YamlNode& node, const std::string& what);

  /// The keys that set a CellSpec.
  static const std::vector<std::string>& cell_keys();
  /// Reads one of these keys; returns false for any other key.
  bool cell_field(CellSpec& cells, const std::string& key, const base::YamlNode& value,
                  const std::string& what);
  void check_cells(const CellSpec& cells, const std::string& what);

  /// Keys of a Line beyond key, name, where, each and those of cells.
  struct More {
    std::vector<std::string> keys;
    ReadEntry read;
  };
  /// Reads a row, a column or a series; messages call it `axis`.
  Line line(const base::YamlNode& node, const std::string& axis, const More& more = {});
  /// Reads a non-empty list of them with unique keys. `read` reads one and returns its Line.
  void lines(const base::YamlNode& node, const std::string& what, const std::string& axis,
             const std::function<const Line&(const base::YamlNode& item)>& read);

 private:
  std::string named_field(const std::string& name, int line, const std::string& what);

  base::FileProblems& problems_;
};

}  // namespace petlab::reports
