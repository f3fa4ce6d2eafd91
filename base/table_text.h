#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace petlab::base {

/// Hands out the lines of a text without their ends (LF or CRLF).
class TextLines {
 public:
  explicit TextLines(std::string_view text) : rest_(text) {}
  /// False at the end of the text.
  bool next(std::string_view& line);
  /// The number of the last line that next() gave, from 1.
  std::int64_t number() const { return number_; }

 private:
  std::string_view rest_;
  std::int64_t number_ = 0;
};

/// A row of a file with columns. A header is a row like any other.
struct TableRecord {
  std::vector<std::string> fields;
  std::int64_t line = 0;  // where it begins, from 1
};

/// Rows of fields between tabs, without quoting.
std::vector<TableRecord> cut_tsv(std::string_view text);

/// Throws; the text says what is wrong in a line.
using RefuseRecord = std::function<void(std::int64_t line, const std::string& what)>;
/// Rows as in RFC 4180: commas, double quotes around a field, which then may contain newlines.
std::vector<TableRecord> cut_csv(std::string_view text, const RefuseRecord& refuse);

}  // namespace petlab::base
