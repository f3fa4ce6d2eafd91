#include "base/files.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/end_of_file.h"
#include "base/error.h"
#include "base/script_digest.h"
#include "sweeps/error.h"
#include "tests/support/catch.h"
#include "tests/support/programs.h"
#include "tests/support/temp_dir.h"

using namespace petlab;
using petlab::testing::TempDir;

namespace {

/// Runs the hidden test case with this tag in a separate process with injected faults.
void run_under(const std::string& faults, const std::string& tag, const std::string& place) {
  const auto shim = petlab::testing::program("petlab-faults.so");
  const auto program = std::filesystem::read_symlink("/proc/self/exe");
  const auto result = petlab::testing::run_command(
      "PETLAB_TEST_FILE='" + place + "' LD_PRELOAD=" + shim.string() +
      " ASAN_OPTIONS=verify_asan_link_order=0 PETLAB_TEST_FAULTS='fail program=" +
      program.filename().string() + " " + faults + "' " + program.string() + " '" + tag + "'");
  INFO(result.out << result.err);
  CHECK(result.exit_code == 0);
  CHECK(result.out.find("All tests passed") != std::string::npos);
}

}  // namespace

TEST_CASE("A file that is missing, or below a file, reads as none; an unreadable one is an error",
          "[base]") {
  const TempDir folder;
  const auto file = folder.write("file", "text");
  CHECK(base::read_file_if_any(file, 10) == "text");
  CHECK_FALSE(base::read_file_if_any(folder.path() / "missing", 10));
  CHECK_FALSE(base::read_file_if_any(file / "below", 10));
  const auto link = folder.path() / "link";
  std::filesystem::create_symlink(link, link);
  CHECK_THROWS_WITH(base::read_file_if_any(link, 10),
                    link.string() + ": cannot be read: Too many levels of symbolic links");
}

// The test below runs this case in a separate process, in which every sync fails.
TEST_CASE("on a disk where every sync fails", "[.][unsynced]") {
  const char* file = std::getenv("PETLAB_TEST_FILE");
  REQUIRE(file != nullptr);
  CHECK_THROWS_AS(base::write_file_atomically(file, "new"), base::Error);
  CHECK(petlab::testing::read_file(file) == "old");
}

TEST_CASE("A file gets its name only after it is synced to disk", "[sweeps]") {
  const TempDir folder;
  const auto file = folder.write("file", "old");
  run_under("calls=fsync,fdatasync error=EIO", "[unsynced]", file.string());
  // No part of the new file is left.
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 1);
  base::write_file_atomically(file, "new");
  CHECK(petlab::testing::read_file(file) == "new");
}

namespace {

void give_new_names(const std::filesystem::path& folder) {
  const auto write = [&](const char* name, const char* content) {
    std::ofstream(folder / name) << content;
    return folder / name;
  };
  CHECK(base::give_new_name(write("made", "new"), folder / "file") == 0);
  CHECK(petlab::testing::read_file(folder / "file") == "new");
  CHECK_FALSE(std::filesystem::exists(folder / "made"));
  CHECK(base::give_new_name(write("made", "newer"), folder / "file") == EEXIST);
  CHECK(petlab::testing::read_file(folder / "file") == "new");
  CHECK(petlab::testing::read_file(folder / "made") == "newer");
  CHECK(base::give_new_name(folder / "made", folder / "none/file") == ENOENT);

  std::filesystem::create_directory(folder / "many");
  write("many/one", "1");
  CHECK(base::give_new_name(folder / "many", folder / "named") == 0);
  CHECK(petlab::testing::read_file(folder / "named/one") == "1");
  CHECK_FALSE(std::filesystem::exists(folder / "many"));
  std::filesystem::create_directory(folder / "many");
  for (const char* existing : {"named", "file", "empty"}) {
    if (existing == std::string("empty")) std::filesystem::create_directory(folder / existing);
    CHECK(base::give_new_name(folder / "many", folder / existing) == EEXIST);
  }
  CHECK(petlab::testing::read_file(folder / "named/one") == "1");
  CHECK(std::filesystem::is_directory(folder / "many"));
}

}  // namespace

TEST_CASE("without renameat2 as on NFS", "[.][nfs-names]") {
  const char* folder = std::getenv("PETLAB_TEST_FILE");
  REQUIRE(folder != nullptr);
  give_new_names(folder);
}

TEST_CASE("A new name never replaces a file, not even on NFS", "[base]") {
  const TempDir here;
  give_new_names(here.path());
  const TempDir there;
  run_under("calls=renameat2 error=EINVAL", "[nfs-names]", there.path().string());
}

TEST_CASE("Writing a file never replaces a device, pipe, folder or link", "[sweeps]") {
  const TempDir folder;
  const auto pipe = folder.path() / "pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  const auto inner = folder.path() / "inner";
  std::filesystem::create_directory(inner);
  // The device is a terminal, in whose folder no file can be replaced. If this test fails as root,
  // it must not replace the machine's /dev/null.
  const int terminal = ::posix_openpt(O_RDWR | O_NOCTTY);
  REQUIRE(terminal >= 0);
  REQUIRE(::grantpt(terminal) == 0);
  REQUIRE(::unlockpt(terminal) == 0);
  const auto device = folder.path() / "device";  // a link like /dev/stdout
  std::filesystem::create_symlink(::ptsname(terminal), device);
  for (const auto& place : {pipe, inner, device}) {
    std::string message;
    try {
      base::write_file_atomically(place, "new");
    } catch (const base::Error& error) {
      message = error.what();
    }
    CHECK(message == place.string() + ": is not a regular file, must be one or not exist yet");
  }
  CHECK(std::filesystem::is_fifo(pipe));
  CHECK(std::filesystem::is_symlink(device));
  ::close(terminal);
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 3);

  const auto file = folder.write("inner/file", "old");
  const auto link = folder.path() / "link";
  std::filesystem::create_symlink("inner/file", link);
  base::write_file_atomically(link, "new");
  CHECK(std::filesystem::is_symlink(link));
  CHECK(petlab::testing::read_file(file) == "new");
}

TEST_CASE("The umask decides who can read a written file", "[base]") {
  const TempDir folder;
  const mode_t before = ::umask(0);
  for (const mode_t mask : {0077, 0027, 0022, 0}) {
    const auto file = folder.path() / std::to_string(mask);
    ::umask(mask);
    base::write_file_atomically(file, "new");
    REQUIRE(base::create_file_atomically(file.string() + "-created", "new"));
    for (const char* end : {"", "-created"}) {
      struct stat status {};
      REQUIRE(::stat((file.string() + end).c_str(), &status) == 0);
      CHECK((status.st_mode & 0777) == (0666 & ~mask));
    }
  }
  ::umask(before);
}

TEST_CASE("A file is created with all of its content, and never replaced", "[base]") {
  const TempDir folder;
  const auto file = folder.path() / "file";
  const auto abandoned = folder.write("file.abcdef", "of a killed process");
  CHECK(base::create_file_atomically(file, "first"));
  CHECK_FALSE(base::create_file_atomically(file, "second"));
  CHECK(petlab::testing::read_file(file) == "first");
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 1);
  CHECK_THROWS_AS(base::create_file_atomically(folder.path() / "none" / "file", "x"), base::Error);
}

TEST_CASE("The end of a file starts with a whole line", "[base]") {
  const TempDir folder;
  CHECK(base::end_of_file(folder.path() / "none", 100).empty());
  CHECK(base::end_of_file(folder.path(), 100).empty());
  const auto file = folder.write("file", "one\ntwo\nthree\n");
  CHECK(base::end_of_file(file, 100) == "one\ntwo\nthree\n");
  CHECK(base::end_of_file(file, 14) == "one\ntwo\nthree\n");
  CHECK(base::end_of_file(file, 10) == "three\n");
  // A line longer than the limit is cut.
  CHECK(base::end_of_file(file, 3) == "ee\n");
  const auto pipe = folder.path() / "pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  CHECK(base::end_of_file(pipe, 100).empty());
}

TEST_CASE("A script's digest has the form of a content security policy", "[base]") {
  // openssl dgst -sha256 -binary | base64
  CHECK(base::script_digest("") == "sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=");
  CHECK(base::script_digest("alert(1)") == "sha256-bhHHL3z2vDgxUt0W3dWQOrprscmda2Y5pLsLg4GF+pI=");
}
