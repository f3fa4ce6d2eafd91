#pragma once

#include <filesystem>
#include <string>

#include "fetch/watcher.h"

namespace petlab::fetch {

/// A file under an exclusive flock, as Hugging Face's own library locks what it downloads. Freed
/// when the process ends, however that is; the file stays.
class FileLock {
 public:
  /// Waits for whoever holds it, and then says once that it waits for `what`. Throws Error where
  /// the file cannot be made, Interrupted.
  FileLock(const std::filesystem::path& file, const std::string& what, const Watcher& watcher);
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  int descriptor_ = -1;
};

}  // namespace petlab::fetch
