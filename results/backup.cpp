#include "results/backup.h"

#include <SQLiteCpp/Backup.h>
#include <SQLiteCpp/Database.h>
#include <SQLiteCpp/Exception.h>
#include <fmt/format.h>
#include <sqlite3.h>

#include "results/connection.h"
#include "results/host_lock.h"
#include "results/made_file.h"

namespace petlab::results {
namespace {

// Copies all pages in a single read, which does not block writers of a WAL database.
void copy_pages(const std::filesystem::path& database, const internal::MadeFile& pending,
                const std::filesystem::path& copy) {
  internal::Connection source(database, internal::Connection::Mode::as_is, {});
  try {
    SQLite::Database target(pending.name().string(), SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE);
    // The copy gets its final name only when complete and synced.
    target.exec("PRAGMA journal_mode = OFF");
    target.exec("PRAGMA synchronous = OFF");
    SQLite::Backup pages(target, source.database());
    if (pages.executeStep(-1) != SQLITE_DONE) {
      throw Error(
          fmt::format("{}: cannot copy it: others have it locked; try again", database.string()));
    }
  } catch (const SQLite::Exception& error) {
    const int code = error.getErrorCode();
    throw Error(fmt::format("{}: cannot copy {} there: {}", copy.string(), database.string(),
                            code == SQLITE_FULL || code == SQLITE_IOERR
                                ? "the disk is full or cannot be read or written; free some space "
                                  "and run the same command again"
                                : error.what()));
  }
  source.check_unchanged();
}

}  // namespace

void back_up(const std::filesystem::path& database, const std::filesystem::path& copy) {
  const auto refuse = [&] {
    throw Error(fmt::format("{}: the file exists; move it away, or name another", copy.string()));
  };
  std::error_code error;
  if (std::filesystem::exists(std::filesystem::symlink_status(copy, error))) refuse();
  internal::remove_abandoned(copy);
  internal::MadeFile pending(copy);
  copy_pages(database, pending, copy);
  pending.sync();
  if (!pending.keep()) refuse();
  pending.sync_folder();
}

std::filesystem::path internal::keep_before_update(const std::filesystem::path& database,
                                                   std::int64_t version) {
  // Next to the real file, if `database` is a link.
  std::filesystem::path copy =
      std::filesystem::is_symlink(database) ? real_path(database) : database;
  copy += fmt::format(".v{}.bak", version);
  remove_abandoned(copy);
  MadeFile pending(copy);
  copy_pages(database, pending, copy);
  pending.sync();
  pending.replace();
  pending.sync_folder();
  return copy;
}

}  // namespace petlab::results
