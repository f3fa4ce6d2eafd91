#pragma once

#include <filesystem>
#include <string>

namespace petlab::base {

/// A new folder in the system's folder for temporary files (TMPDIR), removed with its contents.
class TemporaryFolder {
 public:
  /// The name begins with `purpose`. Throws Error if the folder cannot be created.
  explicit TemporaryFolder(const std::string& purpose);
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace petlab::base
