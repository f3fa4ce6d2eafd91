#include "trainer/files/file_bytes.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "trainer/files/error.h"

namespace petlab::trainer {
namespace {

/// Closes a file descriptor at the end of its scope.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() { close(); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }
  int close() {
    const int result = fd_ < 0 ? 0 : ::close(fd_);
    fd_ = -1;
    return result;
  }

 private:
  int fd_;
};

[[noreturn]] void fail(const std::string& name, std::string_view what) {
  throw Error(fmt::format("{}: {}: {}", name, what, std::strerror(errno)));
}

void write_all(int fd, std::span<const std::byte> bytes, const std::string& name) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail(name, "cannot write");
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

}  // namespace

std::shared_ptr<const FileBytes> FileBytes::map(const std::filesystem::path& file) {
  std::shared_ptr<FileBytes> result(new FileBytes);
  result->name_ = file.string();
  // Not blocking: a named pipe is opened at once and refused below.
  const Descriptor fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (fd.get() < 0) fail(result->name_, "cannot open");
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) fail(result->name_, "cannot stat");
  if (!S_ISREG(status.st_mode)) {
    throw Error(fmt::format("{}: is no regular file", result->name_));
  }
  // Zero bytes cannot be mapped.
  if (status.st_size == 0) return result;
  const auto size = static_cast<std::size_t>(status.st_size);
  void* address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd.get(), 0);
  if (address == MAP_FAILED) fail(result->name_, "cannot map into memory");
  result->mapped_ = true;
  result->bytes_ = {static_cast<const std::byte*>(address), size};
  return result;
}

std::shared_ptr<const FileBytes> FileBytes::own(std::string name, std::vector<std::byte> bytes) {
  std::shared_ptr<FileBytes> result(new FileBytes);
  result->name_ = std::move(name);
  result->owned_ = std::move(bytes);
  result->bytes_ = result->owned_;
  return result;
}

FileBytes::~FileBytes() {
  if (mapped_) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

void write_file_atomically(const std::filesystem::path& file,
                           std::span<const std::span<const std::byte>> parts) {
  // The rename would put a file in the place of a device, a pipe or a link.
  struct stat status {};
  const bool exists = ::stat(file.c_str(), &status) == 0;
  if (exists && !S_ISREG(status.st_mode)) {
    throw Error(
        fmt::format("{}: is no regular file, must be one, or not be there yet", file.string()));
  }
  std::error_code error;
  const bool linked = exists && std::filesystem::is_symlink(file, error);
  const std::filesystem::path real = linked ? std::filesystem::canonical(file, error) : file;
  const std::string name = (error ? file : real).string();
  // The process id keeps two writers apart; a file left by a killed one is overwritten by none.
  const std::string temporary = fmt::format("{}.tmp.{}", name, ::getpid());
  Descriptor fd(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (fd.get() < 0) fail(name, "cannot create");
  try {
    for (const auto part : parts) write_all(fd.get(), part, name);
    if (::fsync(fd.get()) != 0) fail(name, "cannot sync");
    if (fd.close() != 0) fail(name, "cannot close");
    if (::rename(temporary.c_str(), name.c_str()) != 0) fail(name, "cannot rename");
  } catch (...) {
    ::unlink(temporary.c_str());
    throw;
  }
  const std::string parent = std::filesystem::path(name).parent_path().string();
  const std::string folder = parent.empty() ? "." : parent;
  const Descriptor folder_fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder_fd.get() < 0 || ::fsync(folder_fd.get()) != 0) fail(name, "cannot sync its folder");
}

}  // namespace petlab::trainer
