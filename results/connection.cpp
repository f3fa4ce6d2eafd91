#include "results/connection.h"

#include <SQLiteCpp/Backup.h>
#include <SQLiteCpp/Database.h>
#include <SQLiteCpp/Exception.h>
#include <SQLiteCpp/Statement.h>
#include <fmt/format.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>

#include "base/files.h"
#include "results/host_lock.h"
#include "results/notices.h"
#include "results/schema.h"

namespace petlab::results::internal {
namespace {

constexpr const char* kRebuild =
    "move it away and rebuild it from the runs folder: petlab db rebuild";

/// An open file of a connection. It must be read through this handle: opening and closing a
/// database file again would release all of the process's locks on it.
sqlite3_file* open_file(sqlite3* handle, int which) {
  sqlite3_file* file = nullptr;
  if (handle != nullptr) sqlite3_file_control(handle, "main", which, &file);
  return file == nullptr || file->pMethods == nullptr ? nullptr : file;
}

/// Describes the start of the file for a message: "is empty", or its first bytes.
std::string looks_like(sqlite3* handle) {
  sqlite3_file* file = open_file(handle, SQLITE_FCNTL_FILE_POINTER);
  sqlite3_int64 size = 0;
  char head[16] = {};
  if (file == nullptr || file->pMethods->xFileSize(file, &size) != SQLITE_OK)
    return "is unreadable";
  if (size == 0) return "is empty";
  const int length = static_cast<int>(std::min<sqlite3_int64>(size, sizeof head));
  file->pMethods->xRead(file, head, length, 0);
  std::string shown;
  for (int i = 0; i < length; ++i) {
    shown += head[i] >= 0x20 && head[i] < 0x7f ? head[i] : '.';
  }
  return fmt::format("begins with '{}'", shown);
}

/// The error of a disk that cannot read an open file, or 0. SQLite reports both cases as damage.
int read_error(sqlite3_file* file) {
  sqlite3_int64 size = 0;
  if (file == nullptr || file->pMethods->xFileSize(file, &size) != SQLITE_OK) return 0;
  std::vector<char> buffer(1 << 20);
  for (sqlite3_int64 at = 0; at < size;) {
    const auto part = std::min(size - at, static_cast<sqlite3_int64>(buffer.size()));
    const int code = file->pMethods->xRead(file, buffer.data(), static_cast<int>(part), at);
    if (code == SQLITE_IOERR_SHORT_READ) return 0;
    if (code != SQLITE_OK) {
      int error = 0;
      file->pMethods->xFileControl(file, SQLITE_FCNTL_LAST_ERRNO, &error);
      return error;
    }
    at += part;
  }
  return 0;
}

std::string describe(sqlite3* handle, const SQLite::Exception& error,
                     const std::filesystem::path& file, std::string_view doing,
                     std::chrono::milliseconds busy_timeout) {
  const int system_error = handle == nullptr ? 0 : sqlite3_system_errno(handle);
  const int code = error.getErrorCode() & 0xff;
  const std::string subject = fmt::format("{}: cannot {}", file.string(), doing);
  const auto unreadable = [&](const char* what) {
    return fmt::format(
        "{}: input/output error ({}); look at the disk, then run the same command again", subject,
        what);
  };
  const std::string read_only = fmt::format(
      "{}: the file or its folder is read-only; make both writable or name another database with "
      "--db",
      subject);
  if (code == SQLITE_FULL || (code == SQLITE_IOERR && system_error == ENOSPC)) {
    return fmt::format(
        "{}: the disk is full; free some space and run the same command again (nothing is lost: "
        "what workers reported is in the runs folder)",
        subject);
  }
  switch (code) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_PROTOCOL:
      return fmt::format(
          "{}: another process has held the database for more than {} s; end it (fuser {}) or wait",
          subject, std::chrono::duration_cast<std::chrono::seconds>(busy_timeout).count(),
          file.string());
    case SQLITE_READONLY:
      if (error.getExtendedErrorCode() == SQLITE_READONLY_DBMOVED) {
        return fmt::format("{}: the file was deleted or replaced while it was open", subject);
      }
      return read_only;
    case SQLITE_NOTADB:
      return fmt::format("{}: it {}, which is no SQLite database; name another file with --db",
                         subject, looks_like(handle));
    case SQLITE_CORRUPT:
      for (const int which : {SQLITE_FCNTL_FILE_POINTER, SQLITE_FCNTL_JOURNAL_POINTER}) {
        const int failed = read_error(open_file(handle, which));
        if (failed == EIO) return unreadable(std::strerror(failed));
      }
      return fmt::format("{}: the database is damaged ({}); {}", subject, error.what(), kRebuild);
    case SQLITE_CONSTRAINT:
      return fmt::format("{}: the database contradicts the runs folder ({}); {}", subject,
                         error.what(), kRebuild);
    case SQLITE_CANTOPEN:
      // Concerns a file next to the database.
      if (access(base::folder_of(file).c_str(), W_OK) != 0) return read_only;
      return fmt::format("{}: {}; name another file with --db", subject,
                         system_error != 0 ? std::strerror(system_error) : error.what());
    case SQLITE_IOERR:
      return unreadable(system_error != 0 ? std::strerror(system_error) : error.what());
    default:
      return fmt::format("{}: {}", subject, error.what());
  }
}

/// Changes whenever a file is written.
struct FileState {
  explicit FileState(const std::filesystem::path& file) {
    struct stat status {};
    if (stat(file.c_str(), &status) != 0) return;
    values = {static_cast<std::int64_t>(status.st_ino), status.st_size, status.st_mtim.tv_sec,
              status.st_mtim.tv_nsec};
  }
  bool operator==(const FileState&) const = default;
  std::array<std::int64_t, 4> values{};
};

/// A WAL database in a read-only folder can only be read while no process writes it. SQLite must be
/// told so, because it cannot create its auxiliary files there.
bool nobody_writes(const std::filesystem::path& file) {
  const auto is_pending = [&](const char* suffix) {
    std::error_code error;
    const auto size = std::filesystem::file_size(file.string() + suffix, error);
    return !error && size > 0;
  };
  return !is_pending("-wal") && !is_pending("-journal") &&
         access(base::folder_of(file).c_str(), W_OK) != 0;
}

std::string immutable_name(const std::filesystem::path& file) {
  std::string uri = "file:";
  for (const unsigned char c : std::filesystem::absolute(file).string()) {
    if (std::isalnum(c) || std::strchr("/-._~", c) != nullptr) {
      uri += static_cast<char>(c);
    } else {
      uri += fmt::format("%{:02X}", c);
    }
  }
  return uri + "?immutable=1";
}

}  // namespace

void Connection::wait_on(std::optional<std::chrono::steady_clock::time_point>& since) const {
  constexpr std::chrono::seconds kSqliteWaits{10};
  try {
    throw;
  } catch (const SQLite::Exception& error) {
    if (error.getExtendedErrorCode() == SQLITE_READONLY_ROLLBACK) {
      // A killed process left its rollback journal. Only a connection that may write can roll the
      // transaction back, and does so before it reads.
      SQLite::Database writer(of_file().getFilename(), SQLite::OPEN_READWRITE,
                              static_cast<int>(busy_timeout_.count()));
      writer.execAndGet("PRAGMA user_version");
      return;
    }
    if ((error.getErrorCode() & 0xff) != SQLITE_PROTOCOL) throw;
    const auto now = std::chrono::steady_clock::now();
    if (!since) since = now - kSqliteWaits;
    if (now - *since > busy_timeout_) throw;
  }
}

int Connection::on_busy(void* self, int tries) {
  auto& connection = *static_cast<Connection*>(self);
  const auto now = std::chrono::steady_clock::now();
  if (tries == 0) connection.busy_since_ = now;
  if (now - connection.busy_since_ > connection.busy_timeout_) return 0;
  // SQLite's own handler waits up to 100 ms, which starves the longest-waiting process. Short waits
  // with jitter let many writers take turns.
  connection.jitter_ = connection.jitter_ * 1664525u + 1013904223u;
  const int longest = std::min(1000 * (1 + tries / 8), 10000);
  std::this_thread::sleep_for(
      std::chrono::microseconds(200 + (connection.jitter_ >> 8) % static_cast<unsigned>(longest)));
  return 1;
}

Connection::Connection(const std::filesystem::path& file, Mode mode, const OpenOptions& options)
    : file_(file), busy_timeout_(options.busy_timeout) {
  jitter_ = static_cast<std::uint32_t>(getpid());
  if (!std::filesystem::exists(file)) {
    throw Error(
        fmt::format("{}: there is no such file; `petlab run` creates a database, --db names one",
                    file.string()));
  }
  if (std::filesystem::is_directory(file)) {
    throw Error(fmt::format("{}: it is a folder, must be a database file (--db)", file.string()));
  }
  open(mode, options);
}

Connection::Connection(std::filesystem::path file, std::unique_ptr<SQLite::Database> database)
    : file_(std::move(file)), busy_timeout_(0), database_(std::move(database)) {}

void Connection::open(Mode mode, const OpenOptions& options) {
  const std::filesystem::path real = real_path(file_);
  opened_ = false;
  guard("open it", [&] {
    immutable_ = mode != Mode::write && nobody_writes(real);
    if (immutable_) state_ = FileState(real).values;
    const int flags = immutable_            ? SQLite::OPEN_READONLY | SQLite::OPEN_URI
                      : mode != Mode::write ? SQLite::OPEN_READONLY | SQLite::OPEN_NOMUTEX
                                            : SQLite::OPEN_READWRITE;
    original_.reset();
    database_ = std::make_unique<SQLite::Database>(
        immutable_ ? immutable_name(real) : file_.string(), flags);
    sqlite3_busy_handler(database_->getHandle(), &on_busy, this);
    sqlite3_extended_result_codes(database_->getHandle(), 1);
    // Before the first read, so that the log's index stays in memory instead of a shared file.
    if (options.alone) exec("PRAGMA locking_mode = EXCLUSIVE");
    exec("PRAGMA cache_size = -16000; PRAGMA temp_store = MEMORY");
    if (mode == Mode::write) {
      exec(options.alone    ? "PRAGMA synchronous = OFF"
           : options.synced ? "PRAGMA synchronous = FULL"
                            : "PRAGMA synchronous = NORMAL");
      exec("PRAGMA foreign_keys = OFF; PRAGMA journal_size_limit = 67108864");
      register_batch_rows(*this);
    }
  });
  const std::int64_t version = checked_version(*this);
  if (mode == Mode::read && version < kDatabaseVersion) read_through_copy(version);
  opened_ = true;
  learned_from_ = -1;
  if (mode == Mode::read || version == kDatabaseVersion) learn();  // else after the update
}

void Connection::learn() {
  guard("read its catalogs", [&] {
    const std::int64_t now = data_version();
    if (now == learned_from_) return;
    learn_catalogs(*this);
    learned_from_ = now;
  });
}

// SQLite keeps an unnamed database in its cache, and the excess in an unnamed file. A small copy
// needs no file, a large one no memory, and neither survives the process.
void Connection::read_through_copy(std::int64_t version) {
  guard("read it through an updated copy in the folder for temporary files (TMPDIR)", [&] {
    copied_version_ = data_version();
    Connection copy(file_, std::make_unique<SQLite::Database>(
                               "", SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE));
    copy.exec("PRAGMA cache_size = -16000; PRAGMA temp_store = MEMORY; PRAGMA synchronous = OFF");
    sqlite3_extended_result_codes(copy.database().getHandle(), 1);
    {
      SQLite::Backup pages(copy.database(), *database_);
      patiently([&] {
        if (const int code = pages.executeStep(-1); code != SQLITE_DONE) {
          throw SQLite::Exception(database_->getHandle(), code);
        }
      });
    }
    check_unchanged();
    copy.exec("PRAGMA journal_mode = OFF; BEGIN");
    apply_steps(copy, version);
    copy.exec("COMMIT; PRAGMA query_only = ON");
    copy.statements_.clear();
    statements_.clear();
    original_ = std::move(database_);
    database_ = std::move(copy.database_);
  });
  note_copied(file_, version);
}

std::int64_t Connection::data_version() {
  return patiently([&] {
    // Each opened connection starts its own count.
    return of_file().execAndGet("PRAGMA data_version").getInt64() + (reopened_ << 32);
  });
}

void Connection::look_again() {
  const bool is_current = immutable_ ? nobody_writes(real_path(file_)) && is_unchanged()
                                     : !original_ || data_version() == copied_version_;
  if (opened_ && is_current) {
    learn();
    return;
  }
  statements_.clear();
  ++reopened_;
  open(Mode::read, {});
}

bool Connection::is_unchanged() const {
  return !immutable_ || FileState(real_path(file_)).values == state_;
}

void Connection::check_unchanged() const {
  if (original_ || is_unchanged()) return;
  throw Error(fmt::format(
      "{}: it was written while it was read, and in a folder that cannot be written nothing can be "
      "locked: what was read may be wrong; ask again, or ask a copy",
      file_.string()));
}

Connection::~Connection() = default;

bool Connection::in_transaction() const {
  return sqlite3_get_autocommit(database_->getHandle()) == 0;
}

void Connection::exec(const char* sql) {
  patiently([&] { database_->exec(sql); });
}

void Connection::roll_back() noexcept {
  // Keys added by this transaction no longer exist.
  if (series_changed) series.clear();
  series_changed = false;
  batch_open = false;
  if (in_transaction()) database_->tryExec("ROLLBACK");
}

void Connection::check_not_moved() const {
  int moved = 0;
  sqlite3_file_control(of_file().getHandle(), "main", SQLITE_FCNTL_HAS_MOVED, &moved);
  if (moved == 0) return;
  throw Error(fmt::format(
      "{}: the file was deleted or replaced while it was open; run the same command again, or, to "
      "have everything back, rebuild it from the runs folder: petlab db rebuild",
      file_.string()));
}

void Connection::rethrow(std::string_view doing) const {
  try {
    throw;
  } catch (const SQLite::Exception& error) {
    if (database_) check_unchanged();  // not damaged, but changed during the read
    throw Error(
        describe(database_ ? database_->getHandle() : nullptr, error, file_, doing, busy_timeout_));
  }
}

Query::Query(Connection& connection, std::string_view sql) : connection_(connection) {
  std::unique_ptr<SQLite::Statement>& cached = connection.statements_[sql];
  if (!cached) {
    cached = connection.patiently([&] {
      return std::make_unique<SQLite::Statement>(connection.database(), std::string(sql));
    });
  }
  statement_ = cached.get();
}

Query::Query(Connection& connection, const std::string& sql, int)
    : connection_(connection),
      uncached_(connection.patiently(
          [&] { return std::make_unique<SQLite::Statement>(connection.database(), sql); })),
      statement_(uncached_.get()) {}

Query::~Query() { statement_->tryReset(); }

Query& Query::null() {
  statement_->bind(next_++);
  return *this;
}
Query& Query::with(std::int64_t value) {
  statement_->bind(next_++, value);
  return *this;
}
Query& Query::with(double value) {
  statement_->bind(next_++, value);
  return *this;
}
Query& Query::with(std::string_view text) {
  statement_->bind(next_++, std::string(text));
  return *this;
}
Query& Query::with(const std::optional<std::int64_t>& value) {
  return value ? with(*value) : null();
}
Query& Query::with(const std::optional<double>& value) { return value ? with(*value) : null(); }
Query& Query::with(const std::optional<int>& value) {
  return value ? with(static_cast<std::int64_t>(*value)) : null();
}
Query& Query::text_or_null(std::string_view text) { return text.empty() ? null() : with(text); }

bool Query::step() {
  return connection_.patiently([&] { return statement_->executeStep(); });
}
void Query::run() {
  while (step()) {
  }
}
void Query::again() {
  statement_->reset();
  next_ = 1;
}

std::vector<std::string> Query::columns() const {
  std::vector<std::string> names;
  for (int i = 0; i < statement_->getColumnCount(); ++i) {
    names.emplace_back(statement_->getColumnName(i));
  }
  return names;
}
bool Query::is_null(int column) const { return statement_->getColumn(column).isNull(); }
std::int64_t Query::integer(int column) const { return statement_->getColumn(column).getInt64(); }
double Query::real(int column) const { return statement_->getColumn(column).getDouble(); }
std::string Query::text(int column) const { return statement_->getColumn(column).getString(); }
std::optional<std::int64_t> Query::maybe_integer(int column) const {
  return is_null(column) ? std::nullopt : std::optional(integer(column));
}
std::optional<double> Query::maybe_real(int column) const {
  return is_null(column) ? std::nullopt : std::optional(real(column));
}

Value Query::value(int column) const {
  const SQLite::Column found = statement_->getColumn(column);
  if (found.isNull()) return std::monostate{};
  if (found.isInteger()) return std::int64_t{found.getInt64()};
  if (found.isFloat()) return found.getDouble();
  return found.getString();
}

}  // namespace petlab::results::internal
