#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "results/attempt_events.h"
#include "results/error.h"
#include "tests/results/helpers.h"
#include "tests/support/catch.h"
#include "tests/support/skip.h"
#include "tests/support/temp_dir.h"

namespace petlab::results {
namespace {

using testing::TempDir;
using Lines = std::vector<std::string>;

/// A temporary folder with a file system of `size` bytes ("1m") in memory. Only root may mount one.
class SmallDisk {
 public:
  explicit SmallDisk(const std::string& size) {
    mounted_ = mount("petlab", folder_.path().c_str(), "tmpfs", 0, ("size=" + size).c_str()) == 0;
    if (!mounted_) testing::skip("mounting a small tmpfs is not allowed here");
  }
  ~SmallDisk() {
    if (mounted_) umount2(folder_.path().c_str(), MNT_DETACH);
  }
  bool mounted() const { return mounted_; }
  void make_read_only() const {
    REQUIRE(mount("petlab", folder_.path().c_str(), "tmpfs", MS_REMOUNT | MS_RDONLY, "") == 0);
  }
  const std::filesystem::path& path() const { return folder_.path(); }

 private:
  TempDir folder_;
  bool mounted_ = false;
};

/// The message of the Error that `body` throws.
template <typename Body>
std::string failure(Body body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  return "no failure";
}

/// Overwrites a number in a closed database: PRAGMA user_version is at byte 60, application_id at
/// 68.
void put_number(const std::filesystem::path& file, long at, std::uint32_t number) {
  std::fstream out(file, std::ios::in | std::ios::out | std::ios::binary);
  out.seekp(at);
  for (int shift = 24; shift >= 0; shift -= 8) out.put(static_cast<char>(number >> shift));
}

std::filesystem::path closed_database(const TempDir& folder) {
  const auto file = folder.path() / "petlab.db";
  Store store(file);
  Batch batch = store.begin();
  batch.record_trial(trial_row("t1"));
  const auto attempt = std::get<AttemptRef>(batch.begin_attempt(request("t1")));
  append_losses(batch, attempt, 20'000);
  record_finished(batch, attempt, {}, 9);
  batch.commit();
  return file;
}

}  // namespace

TEST_CASE("A database of a newer, older or no version is refused", "[results]") {
  const TempDir folder;
  const auto file = closed_database(folder);
  const std::string name = file.string();
  std::string expected;
  SECTION("newer") {
    put_number(file, 60, 4);
    expected =
        name +
        ": the database has version 4, this petlab knows up to 3; use a newer petlab, or name "
        "another file with --db";
  }
  SECTION("older") {
    put_number(file, 60, 0);
    expected =
        name +
        ": the database has version 0, this petlab needs 1 to 3; move it away and rebuild it "
        "from the runs folder: petlab db rebuild";
  }
  SECTION("of another program") {
    put_number(file, 68, 7);
    expected =
        name + ": it is a database of another program, not of petlab; name another file with --db";
  }
  CHECK(failure([&] { Store store(file); }) == expected);
  CHECK(failure([&] { query(file, "SELECT 1"); }) == expected);
}

TEST_CASE("A file that is not a database is refused, with its first bytes", "[results]") {
  const TempDir folder;
  const auto text = folder.write("notes.txt", std::string(3000, 'a'));
  CHECK(failure([&] { Store store(text); }) ==
        text.string() +
            ": cannot open it: it begins with 'aaaaaaaaaaaaaaaa', which is no SQLite "
            "database; name another file with --db");
  const auto empty = folder.write("empty.db", "");
  CHECK(failure([&] { query(empty, "SELECT 1"); }) ==
        empty.string() + ": the file is empty, no database; delete it or name another with --db");
  CHECK(failure([&] { query(folder.path() / "no.db", "SELECT 1"); }) ==
        (folder.path() / "no.db").string() +
            ": there is no such file; `petlab run` creates a database, --db names one");
  CHECK(failure([&] { Store store(folder.path()); }) ==
        folder.path().string() + ": it is a folder, must be a database file (--db)");
  CHECK(failure([&] { Store store(folder.path() / "no/petlab.db"); }) ==
        (folder.path() / "no/petlab.db").string() + ": cannot make it: there is no folder " +
            (folder.path() / "no").string());
}

TEST_CASE("The error for a damaged database says how to rebuild it", "[results]") {
  const TempDir folder;
  const auto file = closed_database(folder);
  {
    std::fstream out(file, std::ios::in | std::ios::out | std::ios::binary);
    // Whole pages are overwritten: if only the rows of a page are rubbish, a query may end early
    // without an error.
    const auto half = static_cast<long>(std::filesystem::file_size(file)) / 2 / 8192 * 8192;
    const std::string rubbish(static_cast<std::size_t>(half), '\x5a');
    out.seekp(half);
    out.write(rubbish.data(), static_cast<long>(rubbish.size()));
  }
  const std::string message =
      failure([&] { query(file, "SELECT count(*), sum(value) FROM results"); });
  CHECK(message.find(file.string() + ": cannot query it: the database is damaged (") == 0);
  CHECK(message.find("petlab db rebuild") != std::string::npos);
}

TEST_CASE("A database that is deleted or replaced while it is open is noticed", "[results]") {
  const TempDir folder;
  const auto file = folder.path() / "petlab.db";
  Store store(file);
  const std::string expected =
      file.string() +
      ": the file was deleted or replaced while it was open; run the same command again, or, to "
      "have "
      "everything back, rebuild it from the runs folder: petlab db rebuild";
  SECTION("before a transaction") {
    std::filesystem::remove(file);
    CHECK(failure([&] { store.begin(); }) == expected);
    CHECK(failure([&] { store.read().open_attempts(); }) == expected);
  }
  SECTION("replaced within a transaction") {
    const auto other = folder.path() / "other.db";
    { const Store another(other); }
    Batch batch = store.begin();
    batch.record_trial(trial_row("t1"));
    std::filesystem::rename(other, file);
    CHECK(failure([&] { batch.commit(); }) == expected);
    CHECK(failure([&] { batch.record_trial(trial_row("t2")); }) != "");
  }
}

TEST_CASE("Waiting too long for a database that another process holds is an error", "[results]") {
  const TempDir folder;
  const auto file = folder.path() / "petlab.db";
  Store store(file);
  OpenOptions impatient;
  impatient.busy_timeout = std::chrono::milliseconds(1100);
  Store rival(file, impatient);
  const Batch held = store.begin();
  CHECK(failure([&] { rival.begin(); }) ==
        file.string() +
            ": cannot begin to write: another process has held the database for more "
            "than 1 s; end it (fuser " +
            file.string() + ") or wait");
  CHECK(rows(file, "SELECT count(*) FROM trials") == Lines{"0"});  // readers do not wait
}

TEST_CASE("A full disk loses nothing: the same work succeeds once there is space again",
          "[results]") {
  const SmallDisk disk("3m");
  if (!disk.mounted()) return;
  const auto file = disk.path() / "petlab.db";
  const auto ballast = disk.path() / "ballast";
  std::string message;
  std::int64_t stored = 0;
  {
    Store store(file);
    {
      Batch batch = store.begin();
      batch.record_trial(trial_row("t1"));
      batch.begin_attempt(request("t1"));
      batch.commit();
    }
    std::ofstream(ballast) << std::string(1 << 20, 'x');
    const AttemptRef attempt = store.read().open_attempts().at(0).attempt;
    message = failure([&] {
      while (stored < 200'000) {
        Batch batch = store.begin();
        append_losses(batch, attempt, 5'000, 0, stored);
        batch.commit();
        stored += 5'000;
      }
    });
    CHECK(message.find(file.string() + ": cannot ") == 0);
    CHECK(
        message.find(": the disk is full; free some space and run the same command again (nothing "
                     "is lost: what workers reported is in the runs folder)") != std::string::npos);
    // The same connection continues, without a restart.
    std::filesystem::remove(ballast);
    Batch batch = store.begin();
    append_losses(batch, attempt, 5'000, 0, stored);
    record_finished(batch, attempt, {}, 9);
    batch.commit();
    stored += 5'000;
  }
  CHECK(rows(file, "SELECT count(*), count(DISTINCT seq), max(seq) FROM results") ==
        Lines{std::to_string(stored) + "|" + std::to_string(stored) + "|" +
              std::to_string(stored - 1)});
}

TEST_CASE("A disk without space for a new database is an error", "[results]") {
  const SmallDisk disk("64k");
  if (!disk.mounted()) return;
  const auto file = disk.path() / "petlab.db";
  CHECK(failure([&] { Store store(file); }) ==
        file.string() +
            ": cannot make it: the disk is full or cannot be written; free some space "
            "and run the same command again");
  CHECK_FALSE(std::filesystem::exists(file));
  CHECK(std::filesystem::is_empty(disk.path()));
}

TEST_CASE("A database in a read-only folder can be read, and a write error says what to change",
          "[results]") {
  const SmallDisk disk("3m");
  if (!disk.mounted()) return;
  const TempDir folder;
  std::filesystem::copy_file(closed_database(folder), disk.path() / "petlab.db");
  disk.make_read_only();
  const auto file = disk.path() / "petlab.db";
  CHECK(rows(file, "SELECT count(*) FROM results") == Lines{"20000"});
  CHECK(Reader(file).trial("t1"));
  const std::string end =
      ": the file or its folder is read-only; make both writable or name another database with "
      "--db";
  const std::string message = failure([&] {
    Store store(file);
    store.begin();
  });
  CHECK(message.find(file.string() + ": cannot ") == 0);
  CHECK(message.find(end) != std::string::npos);
  CHECK(failure([&] { Store store(disk.path() / "new.db"); }) ==
        (disk.path() / "new.db").string() + ": cannot make it: folder " + disk.path().string() +
            " cannot be written (Read-only file system); make it writable or name another database "
            "with --db");
}

}  // namespace petlab::results
