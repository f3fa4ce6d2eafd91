#include "trainer/files/file_bytes.h"

#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "tests/support/catch.h"
#include "tests/support/programs.h"
#include "tests/support/temp_dir.h"
#include "trainer/files/error.h"

namespace petlab::trainer {
namespace {

/// Limits the size of files that this process may write, to the end of its scope. It replaces a
/// full disk in tests and needs no other user.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    old_handler_ = std::signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &old_);
    rlimit limit = old_;
    limit.rlim_cur = bytes;
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    setrlimit(RLIMIT_FSIZE, &old_);
    std::signal(SIGXFSZ, old_handler_);
  }

 private:
  rlimit old_{};
  void (*old_handler_)(int) = SIG_DFL;
};

void write(const std::filesystem::path& file, const std::string& content) {
  const std::span<const std::byte> part = std::as_bytes(std::span(content));
  write_file_atomically(file, {&part, 1});
}

std::string write_error(const std::filesystem::path& file, const std::string& content) {
  try {
    write(file, content);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

std::string map_error(const std::filesystem::path& file) {
  try {
    FileBytes::map(file);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST_CASE("writing through a link keeps the link", "[trainer]") {
  const testing::TempDir folder;
  const auto file = folder.write("file", "old");
  const auto link = folder.path() / "link";
  std::filesystem::create_symlink("file", link);
  write(link, "new");
  CHECK(std::filesystem::is_symlink(link));
  CHECK(testing::read_file(file) == "new");
}

// The next case runs this one in a separate process, in which every sync fails.
TEST_CASE("with a disk that syncs nothing", "[.][unsynced]") {
  const char* file = std::getenv("PETLAB_TEST_FILE");
  REQUIRE(file != nullptr);
  CHECK(write_error(file, "new").find(": cannot be written: ") != std::string::npos);
  CHECK(testing::read_file(file) == "old");
}

TEST_CASE("a file is renamed only after a successful sync", "[trainer][files]") {
  const testing::TempDir folder;
  const auto file = folder.write("file", "old");
  const auto program = std::filesystem::read_symlink("/proc/self/exe");
  const auto result = testing::run_command(
      "PETLAB_TEST_FILE=" + file.string() +
      " LD_PRELOAD=" + testing::program("petlab-faults.so").string() +
      " ASAN_OPTIONS=verify_asan_link_order=0 PETLAB_TEST_FAULTS='fail program=" +
      program.filename().string() + " calls=fsync,fdatasync error=EIO' " + program.string() +
      " '[unsynced]'");
  INFO(result.out << result.err);
  CHECK(result.exit_code == 0);
  CHECK(result.out.find("3 assertions in 1 test case") != std::string::npos);
}

TEST_CASE("a failed write leaves the old file unchanged", "[trainer][files]") {
  const testing::TempDir dir;
  const auto file = dir.write("a", "old");
  {
    const FileSizeLimit limit(1000);
    CHECK(write_error(file, std::string(2000, 'x')) ==
          file.string() + ": cannot be written: File too large");
  }
  CHECK(testing::read_file(file) == "old");
  // No partial file remains.
  CHECK(std::distance(std::filesystem::directory_iterator(dir.path()), {}) == 1);
  write(file, "new");
  CHECK(testing::read_file(file) == "new");
  CHECK(write_error(dir.path() / "none" / "a", "x") ==
        (dir.path() / "none" / "a").string() + ": cannot be written: No such file or directory");
}

TEST_CASE("a pipe or a folder is not overwritten", "[trainer][files]") {
  const testing::TempDir dir;
  const auto pipe = dir.path() / "pipe";
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  std::filesystem::create_directory(dir.path() / "folder");
  for (const auto& there : {pipe, dir.path() / "folder"}) {
    CHECK(write_error(there, "x") ==
          there.string() + ": is not a regular file, must be one or not exist yet");
  }
  CHECK(std::filesystem::is_fifo(pipe));
  CHECK(std::distance(std::filesystem::directory_iterator(dir.path()), {}) == 2);
}

TEST_CASE("a file that cannot be mapped is reported with the system's reason", "[trainer][files]") {
  const testing::TempDir dir;
  CHECK(map_error(dir.path() / "none") ==
        (dir.path() / "none").string() + ": cannot be opened: No such file or directory");
  CHECK(map_error(dir.path()) == dir.path().string() + ": is not a regular file");
  const auto pipe = dir.path() / "pipe";
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  CHECK(map_error(pipe) == pipe.string() + ": is not a regular file");
  const auto empty = FileBytes::map(dir.write("empty", ""));
  CHECK(empty->bytes().empty());
}

TEST_CASE("messages are one line of UTF-8 for any names in a file", "[trainer][files]") {
  CHECK(std::string(Error("a\xff\nb").what()) ==
        "a\xEF\xBF\xBD\xEF\xBF\xBD"
        "b");
}

}  // namespace
}  // namespace petlab::trainer
