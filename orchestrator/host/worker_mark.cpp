#include "orchestrator/host/worker_mark.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace petlab::orchestrator {

std::filesystem::path asked_file(const std::filesystem::path& worker_lock) {
  return worker_lock.string() + ".asked";
}

bool first_to_ask(const char* asked_file) {
  const int fd = ::open(asked_file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (fd < 0) return errno != EEXIST;
  ::close(fd);
  return true;
}

}  // namespace petlab::orchestrator
