#include "tests/results/counted_statements.h"

#include <SQLiteCpp/SQLiteCpp.h>
#include <sqlite3.h>

namespace petlab::testing {
namespace {

std::int64_t begun = 0;
std::set<std::string> prepared;

int note(unsigned, void*, void* statement, void*) {
  ++begun;
  if (const char* sql = sqlite3_sql(static_cast<sqlite3_stmt*>(statement))) prepared.insert(sql);
  return 0;
}

int watch(sqlite3* database, char**, const void*) {
  return sqlite3_trace_v2(database, SQLITE_TRACE_STMT, &note, nullptr);
}

void watched(const std::function<void()>& body) {
  const auto entry = reinterpret_cast<void (*)()>(&watch);
  sqlite3_auto_extension(entry);
  begun = 0;
  prepared.clear();
  body();
  sqlite3_cancel_auto_extension(entry);
}

}  // namespace

std::int64_t statements_in(const std::function<void()>& body) {
  watched(body);
  return begun;
}

std::set<std::string> sql_in(const std::function<void()>& body) {
  watched(body);
  return prepared;
}

std::vector<std::string> query_plan(const std::filesystem::path& database, const std::string& sql) {
  const SQLite::Database opened(database.string(), SQLite::OPEN_READONLY);
  std::vector<std::string> steps;
  SQLite::Statement plan(opened, "EXPLAIN QUERY PLAN " + sql);
  while (plan.executeStep()) steps.push_back(plan.getColumn(3).getString());
  return steps;
}

}  // namespace petlab::testing
