#include "tests/results/counted_statements.h"

#include <sqlite3.h>

namespace petlab::testing {
namespace {

std::int64_t begun = 0;

int count(unsigned, void*, void*, void*) {
  ++begun;
  return 0;
}

int watch(sqlite3* database, char**, const void*) {
  return sqlite3_trace_v2(database, SQLITE_TRACE_STMT, &count, nullptr);
}

}  // namespace

std::int64_t statements_in(const std::function<void()>& body) {
  const auto entry = reinterpret_cast<void (*)()>(&watch);
  sqlite3_auto_extension(entry);
  begun = 0;
  body();
  sqlite3_cancel_auto_extension(entry);
  return begun;
}

}  // namespace petlab::testing
