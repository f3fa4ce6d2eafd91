#pragma once

#include <filesystem>
#include <optional>
#include <string_view>

#include "base/file_descriptor.h"

namespace petlab::orchestrator {

/// A file with an exclusive flock. The lock is held as long as any process, including a child that
/// inherited it, has this object's descriptor open. The kernel releases it when the last of these
/// processes ends, even if it is killed. The descriptor is closed on exec unless a launcher passes
/// it on.
class LockFile {
 public:
  /// The users who may lock a file that try_lock() creates.
  enum class Users { owner, all };
  /// Locks the file, and creates it if it is missing. Returns std::nullopt if another process holds
  /// the lock. Throws Error with the file's name if it cannot be created, opened or locked.
  static std::optional<LockFile> try_lock(const std::filesystem::path& file,
                                          Users users = Users::owner);
  /// True if any process holds the lock. A missing file is not locked. Throws Error with the file's
  /// name if this cannot be determined: a holder must not be considered dead.
  static bool is_held(const std::filesystem::path& file);
  /// The same for a file that the caller has opened.
  static bool is_held(const base::FileDescriptor& fd, const std::filesystem::path& file);

  /// Replaces the file's content, for people and for `petlab status`.
  void write(std::string_view content) const;
  const std::filesystem::path& file() const { return file_; }
  int fd() const { return fd_.get(); }

 private:
  LockFile(std::filesystem::path file, base::FileDescriptor fd)
      : file_(std::move(file)), fd_(std::move(fd)) {}
  std::filesystem::path file_;
  base::FileDescriptor fd_;
};

}  // namespace petlab::orchestrator
