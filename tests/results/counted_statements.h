#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <set>
#include <string>
#include <vector>

namespace petlab::testing {

/// The number of statements that SQLite starts during `body`, on connections that `body` opens. A
/// repeated statement counts again.
std::int64_t statements_in(const std::function<void()>& body);

/// The SQL text of these statements, each once.
std::set<std::string> sql_in(const std::function<void()>& body);

/// The steps of SQLite's plan for a statement, as EXPLAIN QUERY PLAN prints them: "SEARCH v USING
/// …".
std::vector<std::string> query_plan(const std::filesystem::path& database, const std::string& sql);

}  // namespace petlab::testing
