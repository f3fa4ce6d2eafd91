#include <SQLiteCpp/Database.h>
#include <sqlite3.h>

#include "results/connection.h"

// A table-valued function over Connection::rows, so that a single INSERT … SELECT stores many
// metrics. A statement per row takes more than twice as long.
namespace petlab::results::internal {
namespace {

struct Table {
  sqlite3_vtab base;
  Connection* connection;
};

struct RowsCursor {
  sqlite3_vtab_cursor base;
  std::size_t row;
};

const Connection& connection_of(sqlite3_vtab_cursor* cursor) {
  return *reinterpret_cast<Table*>(cursor->pVtab)->connection;
}

int connect(sqlite3* handle, void* connection, int, const char* const*, sqlite3_vtab** created,
            char**) {
  const int code = sqlite3_declare_vtab(handle, "CREATE TABLE x(seq, step, series, value)");
  if (code != SQLITE_OK) return code;
  auto* table = new Table{{}, static_cast<Connection*>(connection)};
  *created = &table->base;
  return SQLITE_OK;
}

int disconnect(sqlite3_vtab* table) {
  delete reinterpret_cast<Table*>(table);
  return SQLITE_OK;
}

int best_index(sqlite3_vtab*, sqlite3_index_info* info) {
  info->estimatedCost = 1;
  return SQLITE_OK;
}

int open_cursor(sqlite3_vtab*, sqlite3_vtab_cursor** created) {
  auto* cursor = new RowsCursor{{}, 0};
  *created = &cursor->base;
  return SQLITE_OK;
}

int close_cursor(sqlite3_vtab_cursor* cursor) {
  delete reinterpret_cast<RowsCursor*>(cursor);
  return SQLITE_OK;
}

int filter(sqlite3_vtab_cursor* cursor, int, const char*, int, sqlite3_value**) {
  reinterpret_cast<RowsCursor*>(cursor)->row = 0;
  return SQLITE_OK;
}

int next(sqlite3_vtab_cursor* cursor) {
  ++reinterpret_cast<RowsCursor*>(cursor)->row;
  return SQLITE_OK;
}

int at_end(sqlite3_vtab_cursor* cursor) {
  return reinterpret_cast<RowsCursor*>(cursor)->row >= connection_of(cursor).rows.size() ? 1 : 0;
}

int column(sqlite3_vtab_cursor* cursor, sqlite3_context* context, int index) {
  const MetricReport& row = connection_of(cursor).rows[reinterpret_cast<RowsCursor*>(cursor)->row];
  switch (index) {
    case 0:
      sqlite3_result_int64(context, row.seq);
      break;
    case 1:
      sqlite3_result_int64(context, row.step);
      break;
    case 2:
      sqlite3_result_int64(context, row.series.key);
      break;
    default:
      if (row.value) {
        sqlite3_result_double(context, *row.value);
      } else {
        sqlite3_result_null(context);
      }
  }
  return SQLITE_OK;
}

int row_id(sqlite3_vtab_cursor* cursor, sqlite3_int64* id) {
  *id = static_cast<sqlite3_int64>(reinterpret_cast<RowsCursor*>(cursor)->row);
  return SQLITE_OK;
}

sqlite3_module make_module() {
  sqlite3_module module = {};  // no xCreate: only a function, no virtual tables
  module.xConnect = connect;
  module.xBestIndex = best_index;
  module.xDisconnect = disconnect;
  module.xDestroy = disconnect;
  module.xOpen = open_cursor;
  module.xClose = close_cursor;
  module.xFilter = filter;
  module.xNext = next;
  module.xEof = at_end;
  module.xColumn = column;
  module.xRowid = row_id;
  return module;
}

}  // namespace

void register_batch_rows(Connection& connection) {
  static const sqlite3_module module = make_module();
  sqlite3_create_module(connection.database().getHandle(), "batch_rows", &module, &connection);
}

}  // namespace petlab::results::internal
