#include "base/end_of_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "base/file_descriptor.h"

namespace petlab::base {

std::string end_of_file(const std::filesystem::path& file, std::size_t bytes) {
  // Without O_NONBLOCK, opening a pipe would wait for its other end.
  const FileDescriptor opened(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat status {};
  if (opened.get() < 0 || ::fstat(opened.get(), &status) != 0 || !S_ISREG(status.st_mode)) {
    return {};
  }
  const auto wanted = std::min<off_t>(status.st_size, static_cast<off_t>(bytes));
  std::string text(static_cast<std::size_t>(wanted), '\0');
  const ssize_t got = ::pread(opened.get(), text.data(), text.size(), status.st_size - wanted);
  text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  if (wanted == status.st_size) return text;
  const std::size_t line = text.find('\n');
  return line == std::string::npos || line + 1 == text.size() ? text : text.substr(line + 1);
}

}  // namespace petlab::base
