#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace petlab::base {

/// Iterates over the lines of a text, without their ends (LF or CRLF).
class TextLines {
 public:
  explicit TextLines(std::string_view text) : rest_(text) {}
  /// Returns false at the end of the text.
  bool next(std::string_view& line);
  /// The number of the line last returned by next(), starting at 1.
  std::int64_t number() const { return number_; }

 private:
  std::string_view rest_;
  std::int64_t number_ = 0;
};

/// A row of a table file. Headers are rows, too.
struct TableRecord {
  std::vector<std::string> fields;
  std::int64_t line = 0;  // its first line, from 1
};

/// Parses tab-separated rows without quoting.
std::vector<TableRecord> cut_tsv(std::string_view text);

/// Must throw; `what` describes the fault in the line.
using RefuseRecord = std::function<void(std::int64_t line, const std::string& what)>;
/// Parses rows as in RFC 4180: separated by commas, with double quotes around fields that may
/// contain newlines.
std::vector<TableRecord> cut_csv(std::string_view text, const RefuseRecord& refuse);

}  // namespace petlab::base
