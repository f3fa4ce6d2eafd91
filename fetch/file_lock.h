#pragma once

#include <filesystem>
#include <string>

#include "base/file_descriptor.h"
#include "fetch/watcher.h"

namespace petlab::fetch {

/// An exclusive flock on a file, the lock that Hugging Face's library uses for its downloads. The
/// system releases it when the process ends; the file remains.
class FileLock {
 public:
  /// Waits while another process holds the lock, after one note that it waits for `what`. Throws
  /// Error if the file cannot be created, and Interrupted.
  FileLock(const std::filesystem::path& file, const std::string& what, const Watcher& watcher);

 private:
  base::FileDescriptor file_;
};

}  // namespace petlab::fetch
