#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <set>
#include <string>
#include <vector>

namespace petlab::testing {

/// How many statements SQLite begins to run meanwhile, on connections that are opened within
/// `body`; one that is run again counts again.
std::int64_t statements_in(const std::function<void()>& body);

/// The same statements as they were prepared, each once.
std::set<std::string> sql_in(const std::function<void()>& body);

/// The steps of SQLite's plan for a statement, as EXPLAIN QUERY PLAN tells them: "SEARCH v USING
/// …".
std::vector<std::string> query_plan(const std::filesystem::path& database, const std::string& sql);

}  // namespace petlab::testing
