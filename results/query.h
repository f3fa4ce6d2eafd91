#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <variant>
#include <vector>

namespace petlab::results {

/// One value of a result row: NULL, integer, real or text.
using Value = std::variant<std::monostate, std::int64_t, double, std::string>;

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

}  // namespace petlab::results
