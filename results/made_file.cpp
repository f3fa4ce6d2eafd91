#include "results/made_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/files.h"
#include "results/error.h"

namespace petlab::results::internal {
namespace {

constexpr const char* kBeside[] = {"-wal", "-shm", "-journal"};

// Prefix of the temporary names of databases for `file`; a process id and a random number follow.
std::string temporary_prefix(const std::filesystem::path& file) {
  return fmt::format(".{}.new-", file.filename().string());
}

bool has_name(int descriptor, const std::filesystem::path& name) {
  struct stat opened {};
  struct stat named {};
  return fstat(descriptor, &opened) == 0 && stat(name.c_str(), &named) == 0 &&
         opened.st_ino == named.st_ino && opened.st_dev == named.st_dev;
}

[[noreturn]] void throw_failed(const std::filesystem::path& file) {
  throw Error(fmt::format("{}: cannot make it: {}", file.string(), std::strerror(errno)));
}

}  // namespace

MadeFile::MadeFile(std::filesystem::path file) : file_(std::move(file)) {
  std::random_device random;
  name_ = base::folder_of(file_) /
          fmt::format("{}{}-{:08x}", temporary_prefix(file_), getpid(), random());
  // Retry if another process removed the file as abandoned before it was locked. If it cannot be
  // created at all, SQLite reports the error.
  for (struct stat status{}; lock_ < 0 || status.st_nlink == 0; fstat(lock_, &status)) {
    if (lock_ >= 0) close(lock_);
    lock_ = open(name_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (lock_ < 0) return;
    flock(lock_, LOCK_EX);
  }
}

MadeFile::~MadeFile() {
  for (const char* suffix : kBeside) unlink((name_.string() + suffix).c_str());
  unlink(name_.c_str());
  if (lock_ >= 0) close(lock_);
}

bool MadeFile::keep() {
  if (link(name_.c_str(), file_.c_str()) == 0) return true;
  if (errno == EEXIST) return false;
  // On file systems without hard links.
  if (renameat2(AT_FDCWD, name_.c_str(), AT_FDCWD, file_.c_str(), RENAME_NOREPLACE) == 0) {
    return true;
  }
  if (errno == EEXIST) return false;
  throw_failed(file_);
}

void MadeFile::replace() {
  if (rename(name_.c_str(), file_.c_str()) != 0) throw_failed(file_);
}

void MadeFile::sync() const {
  if (lock_ < 0 || fsync(lock_) != 0) throw_failed(file_);
}

void MadeFile::sync_folder() const {
  const int folder = open(base::folder_of(file_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const int error = folder < 0 || fsync(folder) != 0 ? errno : 0;
  if (folder >= 0) close(folder);
  errno = error;
  if (error != 0) throw_failed(file_);
}

void remove_abandoned(const std::filesystem::path& file) {
  const std::filesystem::path folder = base::folder_of(file);
  const std::string prefix = temporary_prefix(file);
  std::vector<std::filesystem::path> left;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (name.starts_with(prefix) &&
        name.find_first_not_of("0123456789abcdef-", prefix.size()) == std::string::npos) {
      left.push_back(entry->path());
    }
  }
  for (const std::filesystem::path& path : left) {
    struct stat status {};
    if (stat(path.c_str(), &status) != 0) continue;
    // A file with a second name is the finished database. It must not be opened here: closing it
    // would release this process's locks on it.
    const int lock = status.st_nlink > 1 ? -1 : open(path.c_str(), O_RDONLY | O_CLOEXEC);
    // The locked file may have lost its name to a new file of the same name.
    if (status.st_nlink > 1 ||
        (lock >= 0 && flock(lock, LOCK_EX | LOCK_NB) == 0 && has_name(lock, path))) {
      for (const char* suffix : kBeside) unlink((path.string() + suffix).c_str());
      unlink(path.c_str());
    }
    if (lock >= 0) close(lock);
  }
}

}  // namespace petlab::results::internal
