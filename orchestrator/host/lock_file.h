#pragma once

#include <filesystem>
#include <optional>
#include <string_view>

#include "base/file_descriptor.h"

namespace petlab::orchestrator {

/// A file under an exclusive flock. The lock is held as long as any process has the descriptor open
/// that this object made, children that inherited it included; the kernel frees it when the last of
/// them is gone, however it went. Not inherited over exec unless a launcher passes it on.
class LockFile {
 public:
  /// Who may lock a file that is made here.
  enum class Users { owner, all };
  /// Makes the file where there is none and locks it; std::nullopt where another holds the lock.
  /// Throws Error naming the file where it cannot be made, opened or locked.
  static std::optional<LockFile> try_lock(const std::filesystem::path& file,
                                          Users users = Users::owner);
  /// True when somebody holds the lock. A missing file is not held. Throws Error naming the file
  /// where that cannot be found out: a holder must not be taken for dead.
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
