#pragma once

#include <filesystem>
#include <string>

namespace petlab::base {

/// A folder of its own in the folder for temporary files (TMPDIR), removed with what is in it.
class TemporaryFolder {
 public:
  /// Its name begins with `purpose`. Throws Error where it cannot be made.
  explicit TemporaryFolder(const std::string& purpose);
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace petlab::base
