#include "fetch/file_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

#include "fetch/error.h"

namespace petlab::fetch {

FileLock::FileLock(const std::filesystem::path& file, const std::string& what,
                   const Watcher& watcher)
    : file_(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666)) {
  if (!file_) {
    throw Error(fmt::format("{}: cannot be created: {}", file.string(), std::strerror(errno)));
  }
  bool waiting_was_told = false;
  while (::flock(file_.get(), LOCK_EX | LOCK_NB) != 0) {
    const int error = errno;
    if (error == EINTR) continue;
    // Some network file systems have no locks. Two downloads may then write the same file; its
    // digest is verified as always.
    if (error == ENOLCK || error == ENOTSUP) return;
    const bool ended = watcher.ended();
    if (error != EWOULDBLOCK || ended) {
      if (ended) throw Interrupted();
      throw Error(fmt::format("{}: cannot be locked: {}", file.string(), std::strerror(error)));
    }
    if (!waiting_was_told)
      watcher.tell(fmt::format("{}: another process downloads it; waiting", what));
    waiting_was_told = true;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
}

}  // namespace petlab::fetch
