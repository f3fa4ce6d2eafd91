#include "trainer/files/file_bytes.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "base/file_descriptor.h"
#include "base/files.h"
#include "trainer/files/error.h"

namespace petlab::trainer {
namespace {

[[noreturn]] void fail(const std::string& name, std::string_view what) {
  throw Error(fmt::format("{}: {}: {}", name, what, std::strerror(errno)));
}

}  // namespace

std::shared_ptr<const FileBytes> FileBytes::map(const std::filesystem::path& file) {
  std::shared_ptr<FileBytes> result(new FileBytes);
  result->name_ = file.string();
  // O_NONBLOCK opens a named pipe without waiting; it is rejected below.
  const base::FileDescriptor fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (fd.get() < 0) fail(result->name_, "cannot be opened");
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) fail(result->name_, "cannot be inspected");
  if (!S_ISREG(status.st_mode)) {
    throw Error(fmt::format("{}: is not a regular file", result->name_));
  }
  // An empty file cannot be mapped.
  if (status.st_size == 0) return result;
  const auto size = static_cast<std::size_t>(status.st_size);
  void* address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd.get(), 0);
  if (address == MAP_FAILED) fail(result->name_, "cannot be mapped into memory");
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
                           std::span<const std::span<const std::byte>> parts) try {
  base::write_file_atomically(file, parts);
} catch (const base::Error& error) {
  throw Error(error.what());
}

}  // namespace petlab::trainer
