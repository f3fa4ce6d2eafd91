#include "orchestrator/host/worker_mark.h"

#include <fcntl.h>

#include <cerrno>

#include "base/file_descriptor.h"

namespace petlab::orchestrator {

std::filesystem::path asked_file(const std::filesystem::path& worker_lock) {
  return worker_lock.string() + ".asked";
}

bool first_to_ask(const char* asked_file) {
  const base::FileDescriptor mark(
      ::open(asked_file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  return mark || errno != EEXIST;
}

}  // namespace petlab::orchestrator
