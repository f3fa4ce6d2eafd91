#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace petlab::reports {

/// A value printed in the paper: a number, or a text (`64/50`, `204k`).
struct PublishedValue {
  std::variant<double, std::string> value;
  std::string erratum;  // known error in it; empty: none
};

/// A table of the paper, by row and column.
struct PublishedTable {
  std::string title;
  std::vector<std::string> rows;
  std::vector<std::string> columns;
  std::map<std::pair<std::string, std::string>, PublishedValue> values;
};

/// The numbers printed in the paper (reports/published.json, compiled in).
class Published {
 public:
  /// Parses the JSON text. Throws std::runtime_error naming the problem.
  explicit Published(std::string_view json);
  Published() = default;

  const std::string& source() const { return source_; }
  /// Names of the tables, in the paper's order.
  const std::vector<std::string>& tables() const { return names_; }
  /// The table with that name, or nullptr.
  const PublishedTable* table(const std::string& name) const;
  /// The value, or nullptr if there is no such table, row or column, or the paper's cell is empty.
  const PublishedValue* find(const std::string& table, const std::string& row,
                             const std::string& column) const;

 private:
  std::string source_;
  std::vector<std::string> names_;
  std::map<std::string, PublishedTable> tables_;
};

}  // namespace petlab::reports
