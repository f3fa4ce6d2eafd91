// Databases that stay open for long, opened by name or through a link.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <utility>

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

/// A read-only bind mount of another folder, removed at the end of its scope. Only root may create
/// one.
class ReadOnlyView {
 public:
  explicit ReadOnlyView(const std::filesystem::path& of) {
    const char* here = folder_.path().c_str();
    mounted_ = mount(of.c_str(), here, nullptr, MS_BIND, nullptr) == 0;
    if (mounted_ && mount(nullptr, here, nullptr, MS_BIND | MS_REMOUNT | MS_RDONLY, nullptr) != 0) {
      umount2(here, MNT_DETACH);
      mounted_ = false;
    }
  }
  ~ReadOnlyView() {
    if (mounted_) umount2(folder_.path().c_str(), MNT_DETACH);
  }
  bool mounted() const { return mounted_; }
  const std::filesystem::path& path() const { return folder_.path(); }

 private:
  TempDir folder_;
  bool mounted_ = false;
};

void record(Store& store, const std::string& trial) {
  Batch batch = store.begin();
  batch.record_trial(trial_row(trial));
  batch.commit();
}

/// Returns true if another process sees a lock of this one on the bytes that SQLite locks.
bool is_locked(const std::filesystem::path& file) {
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    const int fd = open(file.c_str(), O_RDWR | O_CLOEXEC);
    struct flock lock = {};
    lock.l_type = F_WRLCK;
    lock.l_whence = SEEK_SET;
    lock.l_start = 0x40000000;
    lock.l_len = 512;
    _exit(fd >= 0 && fcntl(fd, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK ? 1 : 0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 1;
}

}  // namespace

TEST_CASE("A reader in a folder that it cannot write sees the writes of others", "[results]") {
  const TempDir folder;
  const auto file = folder.path() / "petlab.db";
  { Store store(file); }
  const ReadOnlyView view(folder.path());
  if (!view.mounted()) return testing::skip("a read-only mount is not allowed here");
  const Reader reader(view.path() / "petlab.db");
  std::int64_t version = reader.data_version();
  const auto changed = [&] { return std::exchange(version, reader.data_version()) != version; };
  CHECK_FALSE(changed());
  CHECK_FALSE(reader.trial("t1"));
  {
    Store store(file);
    record(store, "t1");
    CHECK(changed());
    CHECK(reader.trial("t1"));  // from the log next to the file, whose writer is still open
    CHECK_FALSE(changed());
    record(store, "t2");
    CHECK(changed());
    CHECK(reader.trial("t2"));
  }
  CHECK(reader.trial("t2"));  // closing the writer moved its log into the file
  {
    Store store(file);
    record(store, "t3");
  }
  CHECK(reader.trial("t3"));
  CHECK(reader.trial_facts(std::vector<std::string>{"t1", "t2", "t3"}).at(2).known);
}

TEST_CASE("A long query fails if its database is written meanwhile, where nothing can be locked",
          "[results]") {
  const TempDir folder;
  const auto file = folder.path() / "petlab.db";
  {
    Store store(file);
    Batch batch = store.begin();
    batch.record_trial(trial_row("t1"));
    append_losses(batch, std::get<AttemptRef>(batch.begin_attempt(request("t1"))), 20'000);
    batch.commit();
  }
  const ReadOnlyView view(folder.path());
  if (!view.mounted()) return testing::skip("a read-only mount is not allowed here");
  std::int64_t rows = 0;
  const auto ask = [&](bool write) {
    rows = 0;
    const RowSink sink{[](const auto&) {},
                       [&](const auto&) {
                         if (++rows == 100 && write) {
                           Store store(file);
                           record(store, "t2");
                         }
                         return true;
                       },
                       [] { return false; }};
    return stream_query(view.path() / "petlab.db", "SELECT * FROM metric_values", sink);
  };
  CHECK(ask(false));
  CHECK(rows == 20'000);
  std::string message;
  try {
    ask(true);
  } catch (const Error& error) {
    message = error.what();
  }
  CHECK(message.find("petlab.db: it was written while it was read, and in a folder that cannot be "
                     "written nothing can be locked: what was read may be wrong; ask again") !=
        std::string::npos);
  CHECK(ask(false));
}

TEST_CASE("Examining a damaged database keeps the locks on it", "[results]") {
  const TempDir folder;
  const auto file = folder.path() / "petlab.db";
  {
    Store store(file);
    Batch batch = store.begin();
    batch.record_trial(trial_row("t1"));
    const auto attempt = std::get<AttemptRef>(batch.begin_attempt(request("t1")));
    append_losses(batch, attempt, 20'000);
    record_finished(batch, attempt, {}, 9);
    batch.commit();
  }
  const Store store(file);
  REQUIRE(is_locked(file));
  const auto size = static_cast<long>(std::filesystem::file_size(file));
  // Another process writes, because closing the file in this one would also release the locks. It
  // overwrites whole pages with bytes that no page starts with; other damage is sometimes not
  // noticed.
  REQUIRE(std::system(fmt::format("yes damaged | dd of='{}' bs=8192 seek={} count={} conv=notrunc "
                                  "iflag=fullblock 2>/dev/null",
                                  file.string(), size / 2 / 8192, size / 2 / 8192)
                          .c_str()) == 0);
  std::string message;
  try {
    query(file, "SELECT count(*), sum(value) FROM results");
  } catch (const Error& error) {
    message = error.what();
  }
  INFO(message);
  CHECK(message.find("the database is damaged (") != std::string::npos);
  CHECK(is_locked(file));
}

TEST_CASE("A linked database has one lock, next to the file itself", "[results]") {
  const TempDir folder;
  std::filesystem::create_directories(folder.path() / "far");
  const auto file = folder.path() / "far/petlab.db";
  const auto link = folder.path() / "link.db";
  std::filesystem::create_symlink("far/petlab.db", link);
  OpenOptions shared;  // as on a network file system
  shared.journal = OpenOptions::Journal::rollback;
  const Store store(link, shared);  // the link's target did not exist before
  CHECK(std::filesystem::exists(file.string() + ".lock"));
  CHECK(std::filesystem::is_symlink(link));
  std::string message;
  try {
    const Store rival(file, shared);
  } catch (const Error& error) {
    message = error.what();
  }
  CHECK(message.find("on a network file system only one may") != std::string::npos);
}

}  // namespace petlab::results
