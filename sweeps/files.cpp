#include "sweeps/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "sweeps/error.h"

namespace petlab::sweeps {
namespace {

[[noreturn]] void refuse(const std::filesystem::path& file, std::string_view what, int error) {
  throw Error(fmt::format("{}: {}: {}", file.string(), what, std::strerror(error)));
}

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return number_; }
  int close() { return ::close(std::exchange(number_, -1)); }

 private:
  int number_;
};

// A file that is to be removed again unless it got its name.
class Temporary {
 public:
  explicit Temporary(std::string path) : path_(std::move(path)) {}
  ~Temporary() {
    if (!path_.empty()) ::unlink(path_.c_str());
  }
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;
  void keep() { path_.clear(); }

 private:
  std::string path_;
};

}  // namespace

std::string read_file(const std::filesystem::path& file, std::uintmax_t limit) {
  const Descriptor in(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (in.get() < 0) refuse(file, "cannot be read", errno);
  struct stat status {};
  if (::fstat(in.get(), &status) != 0) refuse(file, "cannot be read", errno);
  if (!S_ISREG(status.st_mode)) {
    throw Error(fmt::format("{}: found no regular file, wanted one", file.string()));
  }
  std::string content;
  char buffer[1 << 16];
  while (true) {
    const ssize_t got = ::read(in.get(), buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) refuse(file, "cannot be read", errno);
    if (got == 0) return content;
    content.append(buffer, static_cast<std::size_t>(got));
    if (content.size() > limit) {
      throw Error(fmt::format("{}: found more than {} bytes, wanted fewer", file.string(), limit));
    }
  }
}

void write_file_atomically(const std::filesystem::path& file, std::string_view content) {
  const std::filesystem::path folder = file.has_parent_path() ? file.parent_path() : ".";
  std::string name = file.string() + ".XXXXXX";
  Descriptor out(::mkostemp(name.data(), O_CLOEXEC));
  if (out.get() < 0) refuse(file, "cannot be written", errno);
  Temporary temporary(name);
  std::size_t at = 0;
  while (at < content.size()) {
    const ssize_t wrote = ::write(out.get(), content.data() + at, content.size() - at);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) refuse(file, "cannot be written", errno);
    at += static_cast<std::size_t>(wrote);
  }
  // mkostemp makes files that only their owner reads; runs are shared.
  if (::fchmod(out.get(), 0644) != 0) refuse(file, "cannot be written", errno);
  if (::fsync(out.get()) != 0 || out.close() != 0) refuse(file, "cannot be written", errno);
  if (::rename(name.c_str(), file.c_str()) != 0) refuse(file, "cannot be written", errno);
  temporary.keep();
  const Descriptor directory(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (directory.get() < 0 || ::fsync(directory.get()) != 0) {
    refuse(folder, "cannot be synced", errno);
  }
}

}  // namespace petlab::sweeps
