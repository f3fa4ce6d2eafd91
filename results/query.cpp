#include "results/query.h"

#include <SQLiteCpp/Database.h>
#include <SQLiteCpp/Exception.h>
#include <fmt/format.h>
#include <sqlite3.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <string_view>

#include "results/connection.h"
#include "results/error.h"
#include "results/question_sql.h"
#include "results/schema.h"
#include "results/snapshot.h"
#include "results/store.h"

namespace petlab::results {
namespace {

struct Finalize {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};
using StatementHandle = std::unique_ptr<sqlite3_stmt, Finalize>;

constexpr std::size_t kMostSql = std::size_t{16} << 20U;

// Errors in longer lines are reported by position, without showing the line.
constexpr std::size_t kLongestShownLine = 1000;

/// Formats an SQL error, such as `near "FORM": syntax error`, with its position: the line, and a
/// caret below it.
std::string sql_error(sqlite3* handle, const std::string& sql) {
  const std::string message = sqlite3_errmsg(handle);
  const int offset = sqlite3_error_offset(handle);
  if (offset < 0 || offset > static_cast<int>(sql.size())) return "SQL: " + message;
  const std::string before = sql.substr(0, static_cast<std::size_t>(offset));
  const auto line_start = before.rfind('\n') == std::string::npos ? 0 : before.rfind('\n') + 1;
  const auto line_end = sql.find('\n', line_start);
  std::int64_t line = 1;
  for (const char c : before) line += c == '\n';
  // Continuation bytes of UTF-8 take no column.
  std::size_t column = 1;
  for (std::size_t i = line_start; i < before.size(); ++i) {
    column += (static_cast<unsigned char>(before[i]) & 0xc0) != 0x80;
  }
  const std::size_t size = std::min(line_end, sql.size()) - line_start;
  const std::string place = fmt::format("SQL:{}:{}: {}", line, column, message);
  if (size > kLongestShownLine) return place;
  std::string shown = sql.substr(line_start, size);
  for (char& c : shown) c = c == '\t' ? ' ' : c;
  return fmt::format("{}\n  {}\n  {:>{}}", place, shown, "^", column);
}

bool only_space_and_comments(sqlite3* handle, const char* text) {
  sqlite3_stmt* statement = nullptr;
  const char* rest = text;
  while (*rest != '\0') {
    const char* begin = rest;
    const int code = sqlite3_prepare_v2(handle, begin, -1, &statement, &rest);
    const StatementHandle owner(statement);
    if (code != SQLITE_OK || statement != nullptr) return false;
    if (rest == begin) return true;
  }
  return true;
}

// PRAGMAs that only read. SQLite counts most others as reading, too, even if they set values.
constexpr std::string_view kReadingPragmas[] = {
    "table_info",      "table_xinfo",   "table_list",     "index_list",      "index_info",
    "index_xinfo",     "database_list", "function_list",  "collation_list",  "module_list",
    "pragma_list",     "page_count",    "freelist_count", "compile_options", "foreign_key_list",
    "integrity_check", "quick_check"};
// PRAGMAs that only read without a value.
constexpr std::string_view kAskingPragmas[] = {"user_version", "application_id", "encoding",
                                               "page_size",    "journal_mode",   "schema_version"};

int authorize(void*, int action, const char* first, const char* second, const char*, const char*) {
  const auto is_in = [](const auto& list, const char* word) {
    return std::any_of(std::begin(list), std::end(list), [&](std::string_view name) {
      return sqlite3_stricmp(std::string(name).c_str(), word) == 0;
    });
  };
  switch (action) {
    case SQLITE_PRAGMA:
      return is_in(kReadingPragmas, first) || (second == nullptr && is_in(kAskingPragmas, first))
                 ? SQLITE_OK
                 : SQLITE_DENY;
    case SQLITE_TRANSACTION:
    case SQLITE_SAVEPOINT:
    case SQLITE_DETACH:
      return SQLITE_DENY;
    case SQLITE_FUNCTION:
      return sqlite3_stricmp(second, "load_extension") == 0 ? SQLITE_DENY : SQLITE_OK;
    default:
      return SQLITE_OK;
  }
}

StatementHandle prepare(sqlite3* handle, const std::string& sql) {
  if (sql.size() > kMostSql) {
    throw std::invalid_argument(
        fmt::format("SQL: found {} bytes, expected at most {}", sql.size(), kMostSql));
  }
  if (const auto nul = sql.find('\0'); nul != std::string::npos) {
    throw std::invalid_argument(
        fmt::format("SQL: found a NUL byte as character {}, expected none", nul + 1));
  }
  sqlite3_stmt* statement = nullptr;
  const char* rest = nullptr;
  const int code =
      sqlite3_prepare_v2(handle, sql.c_str(), static_cast<int>(sql.size() + 1), &statement, &rest);
  StatementHandle owner(statement);
  if ((code & 0xff) == SQLITE_ERROR) throw std::invalid_argument(sql_error(handle, sql));
  if ((code & 0xff) == SQLITE_READONLY || (code & 0xff) == SQLITE_AUTH) {
    throw std::invalid_argument("SQL: it writes; only reading is allowed");
  }
  if (code != SQLITE_OK) throw SQLite::Exception(handle, code);
  if (statement == nullptr)
    throw std::invalid_argument("SQL: there is no statement, want a SELECT");
  if (!only_space_and_comments(handle, rest)) {
    throw std::invalid_argument(
        fmt::format("SQL: found more than one statement, want one (the "
                    "second begins at character {})",
                    rest - sql.c_str() + 1));
  }
  if (sqlite3_stmt_readonly(statement) == 0) {
    throw std::invalid_argument("SQL: it writes; only reading is allowed");
  }
  return owner;
}

void bind(sqlite3* handle, sqlite3_stmt* statement, const std::vector<Value>& parameters) {
  const int wanted = sqlite3_bind_parameter_count(statement);
  if (wanted != static_cast<int>(parameters.size())) {
    throw std::invalid_argument(
        fmt::format("SQL: it has {} parameters, {} values were given", wanted, parameters.size()));
  }
  for (int i = 1; i <= wanted; ++i) {
    const Value& value = parameters[static_cast<std::size_t>(i - 1)];
    int code = SQLITE_OK;
    if (const auto* integer = std::get_if<std::int64_t>(&value)) {
      code = sqlite3_bind_int64(statement, i, *integer);
    } else if (const auto* real = std::get_if<double>(&value)) {
      code = sqlite3_bind_double(statement, i, *real);
    } else if (const auto* text = std::get_if<std::string>(&value)) {
      code =
          sqlite3_bind_text64(statement, i, text->data(), text->size(), SQLITE_STATIC, SQLITE_UTF8);
    } else {
      code = sqlite3_bind_null(statement, i);
    }
    if (code != SQLITE_OK) throw SQLite::Exception(handle, code);
  }
}

/// Blobs become text x'…'. petlab has no blob columns, but an expression may return one.
Value value_at(sqlite3_stmt* statement, int column) {
  switch (sqlite3_column_type(statement, column)) {
    case SQLITE_INTEGER:
      return std::int64_t{sqlite3_column_int64(statement, column)};
    case SQLITE_FLOAT:
      return sqlite3_column_double(statement, column);
    case SQLITE_TEXT: {
      const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement, column));
      return std::string(text, static_cast<std::size_t>(sqlite3_column_bytes(statement, column)));
    }
    case SQLITE_BLOB: {
      const auto* bytes = static_cast<const unsigned char*>(sqlite3_column_blob(statement, column));
      std::string text = "x'";
      for (int i = 0; i < sqlite3_column_bytes(statement, column); ++i) {
        text += fmt::format("{:02x}", bytes[i]);
      }
      return text + "'";
    }
    default:
      return std::monostate{};
  }
}

/// Limits SQLite's heap; the limit applies to the whole process.
class HeapLimit {
 public:
  explicit HeapLimit(std::int64_t bytes) : former_(sqlite3_hard_heap_limit64(bytes)) {}
  ~HeapLimit() { sqlite3_hard_heap_limit64(former_); }
  HeapLimit(const HeapLimit&) = delete;
  HeapLimit& operator=(const HeapLimit&) = delete;

 private:
  std::int64_t former_;
};

int ask_to_stop(void* sink) { return static_cast<const RowSink*>(sink)->stop() ? 1 : 0; }

/// Returns false if the sink stopped it.
bool run(internal::Connection& connection, const std::string& sql,
         const std::vector<Value>& parameters, const RowSink& sink) {
  sqlite3* handle = connection.database().getHandle();
  // Also prevents ATTACH from creating files, which counts as reading.
  sqlite3_limit(handle, SQLITE_LIMIT_ATTACHED, 0);
  sqlite3_set_authorizer(handle, &authorize, nullptr);
  const StatementHandle statement = connection.patiently([&] { return prepare(handle, sql); });
  bind(handle, statement.get(), parameters);
  std::vector<std::string> names;
  const int columns = sqlite3_column_count(statement.get());
  for (int i = 0; i < columns; ++i) {
    names.emplace_back(sqlite3_column_name(statement.get(), i));
  }
  sink.columns(names);
  const auto step = [&] {
    const int code = sqlite3_step(statement.get());
    if ((code & 0xff) == SQLITE_PROTOCOL || code == SQLITE_READONLY_ROLLBACK) {
      throw SQLite::Exception(handle, code);
    }
    return code;
  };
  int code = SQLITE_OK;
  std::vector<Value> row;
  while ((code = connection.patiently(step)) == SQLITE_ROW) {
    row.clear();
    for (int i = 0; i < columns; ++i) row.push_back(value_at(statement.get(), i));
    if (!sink.row(row)) return false;
  }
  switch (code & 0xff) {
    case SQLITE_DONE:
      connection.check_unchanged();
      return true;
    case SQLITE_INTERRUPT:
      return false;
    case SQLITE_ERROR:
    case SQLITE_MISMATCH:
    case SQLITE_TOOBIG:
      throw std::invalid_argument(std::string("SQL: ") + sqlite3_errmsg(handle));
    default:
      throw SQLite::Exception(handle, code);
  }
}

}  // namespace

std::optional<double> number_in(const Value& value) {
  if (const auto* whole = std::get_if<std::int64_t>(&value)) return static_cast<double>(*whole);
  if (const auto* real = std::get_if<double>(&value)) return *real;
  return std::nullopt;
}

std::string exact_text(const Value& value, std::string_view null) {
  if (const auto* whole = std::get_if<std::int64_t>(&value)) return std::to_string(*whole);
  if (const auto* real = std::get_if<double>(&value)) return fmt::format("{}", *real);
  const auto* text = std::get_if<std::string>(&value);
  return text == nullptr ? std::string(null) : *text;
}

QueryResult query(const std::filesystem::path& database, const std::string& sql,
                  const std::vector<Value>& parameters) {
  internal::Connection connection(database, internal::Connection::Mode::read, {});
  return connection.guard("query it", [&] {
    QueryResult result;
    run(connection, sql, parameters,
        {[&](const std::vector<std::string>& columns) { result.columns = columns; },
         [&](const std::vector<Value>& row) {
           result.rows.push_back(row);
           return true;
         },
         {}});
    return result;
  });
}

QueryResult query(const Reader& reader, const std::string& sql,
                  const std::vector<Value>& parameters) {
  return internal::reading(internal::connection_of(reader), [&] {
    internal::Query rows(internal::connection_of(reader), sql, 0);
    internal::bind_all(rows, parameters);
    QueryResult result;
    result.columns = rows.columns();
    const int columns = static_cast<int>(result.columns.size());
    while (rows.step()) {
      std::vector<Value>& row = result.rows.emplace_back();
      row.reserve(result.columns.size());
      for (int i = 0; i < columns; ++i) row.push_back(rows.value(i));
    }
    return result;
  });
}

bool stream_query(const std::filesystem::path& database, const std::string& sql,
                  const RowSink& sink) {
  internal::Connection connection(database, internal::Connection::Mode::read, {});
  return connection.guard("query it", [&] {
    const HeapLimit limit(kMostMemory);
    sqlite3* const handle = connection.database().getHandle();
    sqlite3_limit(handle, SQLITE_LIMIT_LENGTH, static_cast<int>(kLongestValue));
    connection.exec("PRAGMA temp_store = FILE");
    constexpr int kSteps = 10'000;  // some tenths of a millisecond
    sqlite3_progress_handler(handle, kSteps, &ask_to_stop, const_cast<RowSink*>(&sink));
    try {
      return run(connection, sql, {}, sink);
    } catch (const SQLite::Exception& error) {
      if ((error.getErrorCode() & 0xff) != SQLITE_NOMEM) throw;
      throw Error(
          fmt::format("SQL: it needs more memory than there is, or than {} MiB; ask for "
                      "less at once",
                      kMostMemory >> 20));
    }
  });
}

}  // namespace petlab::results
