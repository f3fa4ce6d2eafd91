#include "base/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "base/error.h"
#include "base/file_descriptor.h"

namespace petlab::base {
namespace {

[[noreturn]] void refuse(const std::filesystem::path& file, std::string_view what, int error) {
  throw Error(fmt::format("{}: {}: {}", file.string(), what, std::strerror(error)));
}

// Removes a file unless keep() is called.
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

constexpr std::string_view kRandomEnd = ".XXXXXX";

void remove_abandoned(const std::filesystem::path& folder, const std::string& name) {
  std::error_code error;
  std::vector<std::filesystem::path> left;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string found = entry->path().filename().string();
    if (found.size() == name.size() + kRandomEnd.size() && found.starts_with(name + ".")) {
      left.push_back(entry->path());
    }
  }
  for (const std::filesystem::path& path : left) {
    // Writers lock their temporary file until it has its final name.
    const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    struct stat locked {};
    struct stat named {};
    if (file.get() >= 0 && ::flock(file.get(), LOCK_EX | LOCK_NB) == 0 &&
        ::fstat(file.get(), &locked) == 0 && ::lstat(path.c_str(), &named) == 0 &&
        locked.st_ino == named.st_ino && locked.st_dev == named.st_dev) {
      ::unlink(path.c_str());
    }
  }
}

// Creates a new file and returns its descriptor; `path` is its name with random letters at the end.
// The file is locked if the file system supports locks. Without them (Lustre without flock, NFS
// without lockd) no process can remove it as abandoned, since that requires the lock.
int make_temporary(const std::filesystem::path& file, std::string& path) {
  while (true) {
    path = file.string() + std::string(kRandomEnd);
    FileDescriptor created(::mkostemp(path.data(), O_CLOEXEC));
    if (!created) refuse(file, "cannot be written", errno);
    int locked = 0;
    do {
      locked = ::flock(created.get(), LOCK_EX);
    } while (locked != 0 && errno == EINTR);
    struct stat status {};
    if (::fstat(created.get(), &status) != 0) {
      const int error = errno;
      ::unlink(path.c_str());
      refuse(file, "cannot be written", error);
    }
    // Another process may have removed it as abandoned before it was locked.
    if (locked != 0 || status.st_nlink > 0) return created.release();
  }
}

// Follows a link, and rejects devices and pipes, which the rename would replace.
std::filesystem::path file_to_replace(const std::filesystem::path& file) {
  struct stat status {};
  if (::stat(file.c_str(), &status) != 0) return file;
  if (!S_ISREG(status.st_mode)) {
    throw Error(
        fmt::format("{}: is not a regular file, must be one or not exist yet", file.string()));
  }
  std::error_code error;
  if (!std::filesystem::is_symlink(file, error)) return file;
  const std::filesystem::path real = std::filesystem::canonical(file, error);
  return error ? file : real;
}

}  // namespace

std::string read_file(const std::filesystem::path& file, std::uintmax_t limit) {
  std::optional<std::string> content = read_file_if_any(file, limit);
  if (!content) refuse(file, "cannot be read", ENOENT);
  return *std::move(content);
}

std::optional<std::string> read_file_if_any(const std::filesystem::path& file,
                                            std::uintmax_t limit) {
  const FileDescriptor in(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (in.get() < 0 && (errno == ENOENT || errno == ENOTDIR)) return std::nullopt;
  if (in.get() < 0) refuse(file, "cannot be read", errno);
  struct stat status {};
  if (::fstat(in.get(), &status) != 0) refuse(file, "cannot be read", errno);
  if (!S_ISREG(status.st_mode)) {
    throw Error(fmt::format("{}: found no regular file, expected one", file.string()));
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
      throw Error(
          fmt::format("{}: found more than {} bytes, expected fewer", file.string(), limit));
    }
  }
}

std::filesystem::path folder_of(const std::filesystem::path& file) {
  return file.has_parent_path() ? file.parent_path() : ".";
}

std::vector<std::filesystem::path> entries_of(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> entries;
  std::error_code error;
  std::filesystem::directory_iterator entry(folder, error);
  if (error == std::errc::no_such_file_or_directory || error == std::errc::permission_denied ||
      error == std::errc::not_a_directory) {
    return entries;
  }
  for (const std::filesystem::directory_iterator end; !error && entry != end;
       entry.increment(error)) {
    entries.push_back(entry->path());
  }
  if (error) refuse(folder, "cannot be read", error.value());
  return entries;
}

void remove_abandoned_writes(const std::filesystem::path& file) {
  remove_abandoned(folder_of(file), file.filename().string());
}

void sync_folder(const std::filesystem::path& folder) {
  const FileDescriptor directory(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (directory.get() < 0 || ::fsync(directory.get()) != 0) {
    refuse(folder, "cannot be synced", errno);
  }
}

void sync_file_system(const std::filesystem::path& folder) {
  const FileDescriptor directory(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (directory.get() < 0 || ::syncfs(directory.get()) != 0) {
    refuse(folder, "cannot be synced", errno);
  }
}

mode_t mode_of_new_files() {
  // umask() reads the mask only by setting it, for all threads.
  const std::filesystem::path file = "/proc/self/status";
  const std::string text = read_file(file, 1 << 16);
  constexpr std::string_view kKey = "\nUmask:\t";
  const std::size_t at = text.find(kKey);
  if (at == std::string::npos) {
    throw Error(fmt::format("{}: found no line Umask, expected one", file.string()));
  }
  return 0666 & ~static_cast<mode_t>(std::stoul(text.substr(at + kKey.size()), nullptr, 8));
}

void write_file_atomically(const std::filesystem::path& file, std::string_view content) {
  const std::span<const std::byte> part = std::as_bytes(std::span(content));
  write_file_atomically(file, std::span(&part, 1));
}

namespace {

using Parts = std::span<const std::span<const std::byte>>;

// `rename` gives the complete temporary file its name and returns an errno. Returns false for
// EEXIST.
bool write_and_rename(const std::filesystem::path& file, Parts parts,
                      int (*rename)(const std::filesystem::path&, const std::filesystem::path&)) {
  const std::filesystem::path folder = folder_of(file);
  remove_abandoned_writes(file);
  std::string name;
  FileDescriptor out(make_temporary(file, name));
  Temporary temporary(name);
  for (const std::span<const std::byte> part : parts) {
    if (!write_all(out.get(), {reinterpret_cast<const char*>(part.data()), part.size()})) {
      refuse(file, "cannot be written", errno);
    }
  }
  // mkostemp creates files that only their owner can read.
  if (::fchmod(out.get(), mode_of_new_files()) != 0) refuse(file, "cannot be written", errno);
  if (::fsync(out.get()) != 0) refuse(file, "cannot be written", errno);
  const int error = rename(name, file);
  if (error == EEXIST) return false;
  if (error != 0) refuse(file, "cannot be written", error);
  temporary.keep();
  sync_folder(folder);
  return true;
}

int rename_over(const std::filesystem::path& current, const std::filesystem::path& name) {
  return ::rename(current.c_str(), name.c_str()) == 0 ? 0 : errno;
}

}  // namespace

void write_file_atomically(const std::filesystem::path& file, Parts parts) {
  write_and_rename(file_to_replace(file), parts, rename_over);
}

bool create_file_atomically(const std::filesystem::path& file, std::string_view content) {
  const std::span<const std::byte> part = std::as_bytes(std::span(content));
  return write_and_rename(file, std::span(&part, 1), give_new_name);
}

int give_new_name(const std::filesystem::path& current, const std::filesystem::path& name) {
  if (::renameat2(AT_FDCWD, current.c_str(), AT_FDCWD, name.c_str(), RENAME_NOREPLACE) == 0)
    return 0;
  if (errno != EINVAL && errno != ENOSYS && errno != EOPNOTSUPP) return errno;
  struct stat before {};
  if (::lstat(current.c_str(), &before) != 0) return errno;
  if (S_ISDIR(before.st_mode)) {
    if (::mkdir(name.c_str(), 0700) != 0) return errno;
    if (::rename(current.c_str(), name.c_str()) == 0) return 0;
    const int error = errno == ENOTEMPTY ? EEXIST : errno;
    ::rmdir(name.c_str());
    return error;
  }
  if (::link(current.c_str(), name.c_str()) != 0) {
    const int error = errno;
    // On NFS, a request with a lost answer is repeated, and then finds the name that it created.
    struct stat after {};
    if (error != EEXIST || ::lstat(name.c_str(), &after) != 0 || after.st_ino != before.st_ino ||
        after.st_dev != before.st_dev) {
      return error;
    }
  }
  ::unlink(current.c_str());
  return 0;
}

}  // namespace petlab::base
