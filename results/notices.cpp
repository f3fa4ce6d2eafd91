#include "results/notices.h"

#include <fmt/format.h>

#include <map>
#include <mutex>
#include <utility>

#include "results/store.h"

namespace petlab::results {
namespace {

struct Notices {
  std::mutex mutex;
  std::function<void(const std::string&)> print;
  std::map<std::filesystem::path, std::string> copies;  // by database; empty once printed
};

Notices& notices() {
  static Notices all;
  return all;
}

}  // namespace

void set_notice_printer(std::function<void(const std::string&)> print) {
  const std::scoped_lock lock(notices().mutex);
  notices().print = std::move(print);
  notices().copies.clear();
}

void print_copy_notices() {
  const std::scoped_lock lock(notices().mutex);
  for (auto& [database, text] : notices().copies) {
    if (!text.empty() && notices().print) notices().print(text);
    text.clear();
  }
}

void internal::note_copied(const std::filesystem::path& database, std::int64_t version) {
  const std::scoped_lock lock(notices().mutex);
  notices().copies.try_emplace(
      database,
      fmt::format("note: {0}: the database has version {1}, this petlab writes {2}; it was "
                  "read through an updated copy (petlab db update --db {0} updates it)",
                  database.string(), version, kDatabaseVersion));
}

void internal::note_updated(const std::filesystem::path& database, std::int64_t version,
                            const std::filesystem::path& backup) {
  const std::scoped_lock lock(notices().mutex);
  notices().copies[database].clear();
  if (!notices().print) return;
  notices().print(fmt::format("{}: updated from version {} to {}; a copy of the old one is {}",
                              database.string(), version, kDatabaseVersion, backup.string()));
}

}  // namespace petlab::results
