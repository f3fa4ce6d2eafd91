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

/// The number that the whole text is; std::nullopt for any other.
template <typename Number>
std::optional<Number> number_from(const std::string& text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

/// Reads what definitions are made of, and keeps every problem instead of stopping at the first.
class DefinitionReader {
 public:
  explicit DefinitionReader(base::FileProblems& problems) : problems_(problems) {}

  void problem(int line, const std::string& what) { problems_.add_text(line, what); }

  using ReadEntry = std::function<void(const std::string& key, const base::YamlNode& value)>;
  /// Calls `read` for each entry of a map whose key is in `known`, which is all where it is empty.
  void map(const base::YamlNode& node, const std::string& what,
           const std::vector<std::string>& known, const ReadEntry& read);
  std::string text(const base::YamlNode& node, const std::string& what);
  /// A text or a list of texts.
  std::vector<std::string> texts(const base::YamlNode& node, const std::string& what);
  /// The name of a field, as words have it (questions::field_named()).
  std::string field(const base::YamlNode& node, const std::string& what);
  bool boolean(const base::YamlNode& node, const std::string& what);
  /// One of the words; the first where it is none of them.
  std::size_t one_of(const base::YamlNode& node, const std::string& what,
                     const std::vector<std::string>& words);
  Selection selection(const base::YamlNode& node, const std::string& what);

  /// The keys of a CellSpec.
  static const std::vector<std::string>& cell_keys();
  /// Reads one of them; false for another key.
  bool cell_field(CellSpec& cells, const std::string& key, const base::YamlNode& value,
                  const std::string& what);
  void check_cells(const CellSpec& cells, const std::string& what);

  /// What a Line of an axis may have besides key, name, where, each and the keys of cells.
  struct More {
    std::vector<std::string> keys;
    ReadEntry read;
  };
  /// A row, a column, a series: `axis` is what messages call it.
  Line line(const base::YamlNode& node, const std::string& axis, const More& more = {});
  /// A list of at least one of them, keys unique. `read` makes one and returns its Line.
  void lines(const base::YamlNode& node, const std::string& what, const std::string& axis,
             const std::function<const Line&(const base::YamlNode& item)>& read);

 private:
  std::string named_field(const std::string& name, int line, const std::string& what);

  base::FileProblems& problems_;
};

}  // namespace petlab::reports
