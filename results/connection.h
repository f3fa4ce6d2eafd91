#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "results/attempt_events.h"
#include "results/query.h"
#include "results/store.h"

namespace SQLite {
class Database;
class Statement;
}  // namespace SQLite

namespace petlab::results::internal {

/// An opened database with its prepared statements, and the one place that turns SQLite's errors
/// into results::Error. Internal to results/.
class Connection {
 public:
  /// read: as a database of this version; one of an earlier version is read through an updated copy
  /// that only this connection has. as_is: to read it in the version that it has. write: likewise
  /// as it is; the caller updates it.
  enum class Mode { read, as_is, write };
  /// Throws Error: missing file, no petlab database, a newer version, no permission.
  Connection(const std::filesystem::path& file, Mode mode, const OpenOptions& options);
  /// Of a database that is being made.
  Connection(std::filesystem::path file, std::unique_ptr<SQLite::Database> database);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  const std::filesystem::path& file() const { return file_; }
  SQLite::Database& database() { return *database_; }
  bool in_transaction() const;
  /// Runs SQL without results.
  void exec(const char* sql);
  /// Ends the transaction without a trace; never throws.
  void roll_back() noexcept;
  /// Throws Error where the file's name no longer leads to the opened file.
  void check_not_moved() const;
  /// Before a read, with no statement in use: a file that was opened as one that nobody writes, or
  /// that was copied, is opened again where somebody has written it since.
  void look_again();
  /// After a read: throws Error where such a file was written meanwhile. Nothing is locked in it,
  /// so what was read may be of two states, or of none.
  void check_unchanged() const;
  /// Differs from an earlier value where another process has written the file since.
  std::int64_t data_version();
  /// Turns the exception in flight, an SQLite::Exception, into an Error; others pass through.
  [[noreturn]] void rethrow(std::string_view doing) const;
  /// Runs `body`; SQLite's errors in it become Errors that say what could not be done.
  template <typename Body>
  auto guard(std::string_view doing, Body&& body) {
    try {
      return body();
    } catch (...) {
      rethrow(doing);
    }
  }

  /// Runs `body`, which begins to read: SQLite waits ten seconds for who stands still in the middle
  /// of a change to the shared index, asks no busy handler and gives up. Then it is run again,
  /// until the busy timeout is over.
  template <typename Body>
  auto patiently(Body&& body) {
    std::optional<std::chrono::steady_clock::time_point> waits_since;
    while (true) {
      try {
        return body();
      } catch (...) {
        wait_on(waits_since);
      }
    }
  }

  /// Rows that the table-valued function `batch_rows` reads.
  std::span<const MetricReport> rows;
  /// Keys of metrics' names, by split, task and name joined by U+001F.
  std::unordered_map<std::string, std::int64_t> series;
  bool series_changed = false;  // since the transaction began
  bool batch_open = false;
  std::int64_t last_serial = 0;     // of the last batch that was begun
  std::int64_t last_committed = 0;  // of the last batch that was committed
  std::int64_t last_rolled_back = 0;

 private:
  friend class Query;
  std::filesystem::path file_;
  std::chrono::milliseconds busy_timeout_;
  std::chrono::steady_clock::time_point busy_since_;
  std::uint32_t jitter_ = 1;
  std::unique_ptr<SQLite::Database> original_;  // set: `database_` is an updated copy of it
  std::int64_t copied_version_ = 0;             // its data_version then
  std::unique_ptr<SQLite::Database> database_;
  std::unordered_map<std::string_view, std::unique_ptr<SQLite::Statement>> statements_;
  bool immutable_ = false;               // SQLite was told that nobody writes the file
  std::array<std::int64_t, 4> state_{};  // of the file then
  std::int64_t reopened_ = 0;
  bool opened_ = true;  // false: it failed to open it again
  bool is_unchanged() const;
  SQLite::Database& of_file() const { return original_ ? *original_ : *database_; }
  void open(Mode mode, const OpenOptions& options);
  void read_through_copy(std::int64_t version);
  static int on_busy(void* self, int tries);
  /// Throws the exception in flight again, unless SQLite gave up waiting and there is time left.
  void wait_on(std::optional<std::chrono::steady_clock::time_point>& since) const;
};

/// Makes `Connection::rows` readable in SQL as `batch_rows` (batch_rows.cpp).
void register_batch_rows(Connection& connection);

/// A prepared statement in use: taken from the connection's cache, given back reset.
class Query {
 public:
  /// `sql` must have static storage: it is the key of the cache.
  Query(Connection& connection, std::string_view sql);
  /// Not cached: for SQL that was put together.
  Query(Connection& connection, const std::string& sql, int);
  ~Query();
  Query(const Query&) = delete;
  Query& operator=(const Query&) = delete;

  /// Binds ?1, ?2, … in the order of the calls; the text must outlive the step.
  Query& null();
  Query& with(std::int64_t value);
  Query& with(double value);
  Query& with(std::string_view text);
  Query& with(const std::optional<std::int64_t>& value);
  Query& with(const std::optional<double>& value);
  Query& with(const std::optional<int>& value);
  /// Empty text as NULL.
  Query& text_or_null(std::string_view text);

  bool step();
  /// Steps to the end.
  void run();
  /// Makes it ready for other values.
  void again();

  /// Their names.
  std::vector<std::string> columns() const;
  bool is_null(int column) const;
  std::int64_t integer(int column) const;
  double real(int column) const;
  std::string text(int column) const;
  std::optional<std::int64_t> maybe_integer(int column) const;
  std::optional<double> maybe_real(int column) const;
  /// By what it holds; a blob as its bytes.
  Value value(int column) const;

 private:
  Connection& connection_;
  std::unique_ptr<SQLite::Statement> own_;
  SQLite::Statement* statement_;
  int next_ = 1;
};

}  // namespace petlab::results::internal
