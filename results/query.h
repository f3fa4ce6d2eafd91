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

/// A value of a result row: NULL, integer, real or text.
using Value = std::variant<std::monostate, std::int64_t, double, std::string>;

/// The value of a number; std::nullopt for a text or NULL.
std::optional<double> number_in(const Value& value);

/// Formats a value for programs: the shortest text that reads back as the same value, or `null` for
/// NULL.
std::string exact_text(const Value& value, std::string_view null);

/// The result of a SELECT.
struct QueryResult {
  std::vector<std::string> columns;
  std::vector<std::vector<Value>> rows;  // each as long as columns
};

/// Runs one read-only statement on a database file, with `parameters` bound to ?1, ?2, …. A sweep
/// may write the database at the same time. Throws std::invalid_argument for SQL that does not
/// parse, that writes, or that has more than one statement, and results::Error for a file that is
/// missing, not petlab's database, or of another version.
QueryResult query(const std::filesystem::path& database, const std::string& sql,
                  const std::vector<Value>& parameters = {});

class Reader;

/// Runs one of petlab's own statements on an open database.
QueryResult query(const Reader& reader, const std::string& sql,
                  const std::vector<Value>& parameters = {});

/// Receives the rows of stream_query().
struct RowSink {
  /// Called once, before any row.
  std::function<void(const std::vector<std::string>& columns)> columns;
  /// Returns false to end the query.
  std::function<bool(const std::vector<Value>& row)> row;
  /// Polled while the statement runs, also between rows; returns true to end it.
  std::function<bool()> stop;
};

/// Runs one untrusted read-only statement as query() does, and passes each row to `sink` as it
/// arrives. Memory is limited: values have at most kLongestValue bytes, SQLite uses at most
/// kMostMemory, and sorting uses temporary files. Returns false if the sink ended it. Throws as
/// query(), and results::Error if the memory is insufficient.
bool stream_query(const std::filesystem::path& database, const std::string& sql,
                  const RowSink& sink);

inline constexpr std::int64_t kLongestValue = std::int64_t{64} << 20;
inline constexpr std::int64_t kMostMemory = std::int64_t{1} << 30;

}  // namespace petlab::results
