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

/// An open database with its prepared statements. Only this class converts SQLite's errors into
/// results::Error. Internal to results/.
class Connection {
 public:
  /// read: as this petlab's version; an earlier version is read through an updated private copy.
  /// as_is: read without an update. write: also without an update, which the caller performs.
  enum class Mode { read, as_is, write };
  /// Throws Error for a missing file, another program's database, a newer version, or no
  /// permission.
  Connection(const std::filesystem::path& file, Mode mode, const OpenOptions& options);
  /// For a database that is being created.
  Connection(std::filesystem::path file, std::unique_ptr<SQLite::Database> database);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  const std::filesystem::path& file() const { return file_; }
  SQLite::Database& database() { return *database_; }
  bool in_transaction() const;
  /// Runs SQL without results.
  void exec(const char* sql);
  /// Rolls back the transaction; never throws.
  void roll_back() noexcept;
  /// Throws Error if the file's name no longer leads to the opened file.
  void check_not_moved() const;
  /// Call before a read, with no statement in use. Reopens a file that was opened as immutable or
  /// copied, if it was written since.
  void look_again();
  /// Call after a read. Throws Error if such a file was written meanwhile: without locks, the
  /// result may mix two states.
  void check_unchanged() const;
  /// Changes whenever another process has written the file.
  std::int64_t data_version();
  /// Converts an SQLite::Exception in flight into an Error; rethrows others.
  [[noreturn]] void rethrow(std::string_view doing) const;
  /// Runs `body` and converts SQLite's errors into Errors about what `doing` describes.
  template <typename Body>
  auto guard(std::string_view doing, Body&& body) {
    try {
      return body();
    } catch (...) {
      rethrow(doing);
    }
  }

  /// Runs `body`, which begins to read. If another process stops while it changes the WAL index,
  /// SQLite waits ten seconds without calling the busy handler, then fails. This repeats `body`
  /// until the busy timeout ends, and after a killed process's transaction is rolled back.
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

  /// Input of the table-valued function `batch_rows`.
  std::span<const MetricReport> rows;
  /// Keys of metrics' names, by split, task and name joined by U+001F.
  std::unordered_map<std::string, std::int64_t> series;
  bool series_changed = false;  // in this transaction
  bool batch_open = false;
  std::int64_t last_serial = 0;     // of the last batch started
  std::int64_t last_committed = 0;  // of the last batch committed
  std::int64_t last_rolled_back = 0;

 private:
  friend class Query;
  std::filesystem::path file_;
  std::chrono::milliseconds busy_timeout_;
  std::chrono::steady_clock::time_point busy_since_;
  std::uint32_t jitter_ = 1;
  std::unique_ptr<SQLite::Database> original_;  // if set, `database_` is an updated copy of it
  std::int64_t copied_version_ = 0;             // its data_version when copied
  std::unique_ptr<SQLite::Database> database_;
  std::unordered_map<std::string_view, std::unique_ptr<SQLite::Statement>> statements_;
  bool immutable_ = false;               // opened as a file without writers
  std::array<std::int64_t, 4> state_{};  // the file's state when opened
  std::int64_t reopened_ = 0;
  bool opened_ = true;              // false if reopening it failed
  std::int64_t learned_from_ = -1;  // data_version when learn() read the catalogs
  bool is_unchanged() const;
  SQLite::Database& of_file() const { return original_ ? *original_ : *database_; }
  void open(Mode mode, const OpenOptions& options);
  void read_through_copy(std::int64_t version);
  /// Learns the database's catalogs if it has changed since the last call.
  void learn();
  static int on_busy(void* self, int tries);
  /// Rethrows the exception in flight, unless SQLite gave up waiting and there is time left, or the
  /// transaction of a killed process was in the way and is now rolled back.
  void wait_on(std::optional<std::chrono::steady_clock::time_point>& since) const;
};

/// Registers `batch_rows` for SQL (batch_rows.cpp).
void register_batch_rows(Connection& connection);

/// A prepared statement from the connection's cache. It is reset and returned at the end.
class Query {
 public:
  /// `sql` is the cache's key and must have static storage.
  Query(Connection& connection, std::string_view sql);
  /// Not cached, for SQL built at run time.
  Query(Connection& connection, const std::string& sql, int);
  ~Query();
  Query(const Query&) = delete;
  Query& operator=(const Query&) = delete;

  /// Bind ?1, ?2, … in the order of the calls; texts must outlive the step.
  Query& null();
  Query& with(std::int64_t value);
  Query& with(double value);
  Query& with(std::string_view text);
  Query& with(const std::optional<std::int64_t>& value);
  Query& with(const std::optional<double>& value);
  Query& with(const std::optional<int>& value);
  /// Binds NULL for an empty text.
  Query& text_or_null(std::string_view text);

  bool step();
  /// Steps to the end.
  void run();
  /// Resets the statement for new values.
  void again();

  /// The names of the columns.
  std::vector<std::string> columns() const;
  bool is_null(int column) const;
  std::int64_t integer(int column) const;
  double real(int column) const;
  std::string text(int column) const;
  std::optional<std::int64_t> maybe_integer(int column) const;
  std::optional<double> maybe_real(int column) const;
  /// By the value's type; a blob as its bytes.
  Value value(int column) const;

 private:
  Connection& connection_;
  std::unique_ptr<SQLite::Statement> uncached_;
  SQLite::Statement* statement_;
  int next_ = 1;
};

}  // namespace petlab::results::internal
