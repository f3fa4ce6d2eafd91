#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace petlab::results {

/// One value of a result row: NULL, integer, real or text.
using Value = std::variant<std::monostate, std::int64_t, double, std::string>;

/// A number's value; nothing where the value is a text or NULL.
std::optional<double> number_in(const Value& value);

/// For programs: the shortest text that reads back as the same value, and `null` for NULL.
std::string exact_text(const Value& value, std::string_view null);

/// What a SELECT gave.
struct QueryResult {
  std::vector<std::string> columns;
  std::vector<std::vector<Value>> rows;  // each as long as columns
};

/// Runs one read-only statement on a database file, `parameters` bound to ?1, ?2, …; also while a
/// sweep writes to it. Throws std::invalid_argument for SQL that does not parse, that writes, or
/// that is more than one statement, and results::Error for a file that is missing, no petlab
/// database, or of another version.
QueryResult query(const std::filesystem::path& database, const std::string& sql,
                  const std::vector<Value>& parameters = {});

class Reader;

/// The same for a statement of petlab's own, on an open database.
QueryResult query(const Reader& reader, const std::string& sql,
                  const std::vector<Value>& parameters = {});

/// Who takes the rows of stream_query().
struct RowSink {
  /// Called once, before any row.
  std::function<void(const std::vector<std::string>& columns)> columns;
  /// False: no further row is wanted.
  std::function<bool(const std::vector<Value>& row)> row;
  /// Asked again and again while the statement runs, also between two rows; true ends it.
  std::function<bool()> stop;
};

/// Runs one read-only statement that anybody may have written, as query() does, and hands over each
/// row as it comes. Memory is bounded: no value has more than kLongestValue bytes, SQLite has at
/// most kMostMemory, sorting goes to temporary files. False where the sink ended it. Throws as
/// query(), and results::Error where that memory is not enough.
bool stream_query(const std::filesystem::path& database, const std::string& sql,
                  const RowSink& sink);

inline constexpr std::int64_t kLongestValue = std::int64_t{64} << 20;
inline constexpr std::int64_t kMostMemory = std::int64_t{1} << 30;

}  // namespace petlab::results
