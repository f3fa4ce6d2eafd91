#include "base/open_files.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <climits>
#include <string>
#include <vector>

#include "base/file_descriptor.h"
#include "tests/support/catch.h"

using namespace petlab;
using base::CloseFiles;

namespace {

bool is_open(int fd) { return ::fcntl(fd, F_GETFD) >= 0; }
bool closes_on_exec(int fd) { return ::fcntl(fd, F_GETFD) == FD_CLOEXEC; }

// Runs `child` in a forked process and returns its result, the exit code.
template <typename Child>
int in_child(const Child& child) {
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(child());
  int status = 0;
  ::waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace

TEST_CASE("Only descriptors in the range are closed or marked", "[base][kernel]") {
  std::vector<base::FileDescriptor> files;
  for (int file = 0; file < 300; ++file) files.emplace_back(::open("/dev/null", O_RDONLY));
  const int first = files[10].get();
  const int last = files[290].get();
  const auto check = [&](CloseFiles when) {
    return in_child([&] {
      base::close_files(first, last, when);
      for (const base::FileDescriptor& file : files) {
        const bool is_in = file.get() >= first && file.get() <= last;
        if (when == CloseFiles::now && is_open(file.get()) == is_in) return 1;
        if (when == CloseFiles::on_exec && closes_on_exec(file.get()) != is_in) return 2;
      }
      return 0;
    });
  };
  CHECK(check(CloseFiles::now) == 0);
  CHECK(check(CloseFiles::on_exec) == 0);
  CHECK(in_child([&] {
          base::close_files(3, INT_MAX, CloseFiles::now);
          return is_open(2) && !is_open(files[0].get()) && !is_open(files[299].get()) ? 0 : 1;
        }) == 0);
}

TEST_CASE("Open files are counted", "[base]") {
  const std::size_t before = base::open_file_count();
  const base::FileDescriptor one(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  CHECK(base::open_file_count() == before + 1);
}
