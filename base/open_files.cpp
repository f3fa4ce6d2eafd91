#include "base/open_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <system_error>

namespace petlab::base {
namespace {

// Not in the headers of some supported systems.
#ifdef SYS_close_range
constexpr long kCloseRange = SYS_close_range;
#else
constexpr long kCloseRange = 436;
#endif
constexpr unsigned kCloseRangeOnExec = 1U << 2;

// Without /proc, closes at most this many descriptors.
constexpr rlim_t kMostWithoutProc = 65536;

rlimit limit_before_raise{};
bool is_raised = false;

void close_file(int fd, CloseFiles when) {
  if (when == CloseFiles::now) {
    ::close(fd);
  } else {
    ::fcntl(fd, F_SETFD, FD_CLOEXEC);
  }
}

// A record of getdents64. opendir would allocate memory, which is unsafe in the child of a
// multithreaded process.
struct DirectoryEntry {
  std::uint64_t inode;
  std::int64_t offset;
  std::uint16_t length;
  std::uint8_t type;
  char name[1];
};

// Parses a name as a number; -1 if it is none.
int number_in(const char* name) {
  int number = 0;
  for (; *name >= '0' && *name <= '9'; ++name) number = number * 10 + (*name - '0');
  return *name == '\0' ? number : -1;
}

}  // namespace

std::size_t raise_open_file_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  if (!is_raised && limit.rlim_cur < limit.rlim_max) {
    const rlimit raised{limit.rlim_max, limit.rlim_max};
    if (::setrlimit(RLIMIT_NOFILE, &raised) == 0) {
      limit_before_raise = limit;
      is_raised = true;
      limit = raised;
    }
  }
  return limit.rlim_cur;
}

void restore_open_file_limit() {
  if (is_raised) ::setrlimit(RLIMIT_NOFILE, &limit_before_raise);
}

std::size_t open_file_count() {
  std::error_code error;
  const std::filesystem::directory_iterator files("/proc/self/fd", error);
  // Exclude the directory iterator's descriptor.
  return error ? 0 : static_cast<std::size_t>(std::distance(begin(files), end(files))) - 1;
}

void close_files(int first, int last, CloseFiles when) {
  if (first > last) return;
  const unsigned flags = when == CloseFiles::on_exec ? kCloseRangeOnExec : 0;
  // Linux before 5.11 does not support the flag, and some sandboxes reject unknown calls with
  // EPERM.
  if (::syscall(kCloseRange, static_cast<unsigned>(first), static_cast<unsigned>(last), flags) ==
      0) {
    return;
  }
  const int folder = ::open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) {
    rlimit limit{};
    ::getrlimit(RLIMIT_NOFILE, &limit);
    const int end = static_cast<int>(std::min(limit.rlim_cur, kMostWithoutProc));
    for (int fd = first; fd < end && fd <= last; ++fd) close_file(fd, when);
    return;
  }
  alignas(DirectoryEntry) char buffer[4096];
  for (long got = 0; (got = ::syscall(SYS_getdents64, folder, buffer, sizeof buffer)) > 0;) {
    for (long at = 0; at < got;) {
      const auto* entry = reinterpret_cast<const DirectoryEntry*>(buffer + at);
      const int fd = number_in(entry->name);
      if (fd >= first && fd <= last && fd != folder) close_file(fd, when);
      at += entry->length;
    }
  }
  ::close(folder);
}

}  // namespace petlab::base
