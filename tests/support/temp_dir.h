#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace petlab::testing {

/// A fresh folder, removed with its content at the end of its scope.
class TempDir {
 public:
  TempDir();
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  const std::filesystem::path& path() const { return path_; }
  /// Writes `content` to a file in it, creating folders as needed, and returns its path.
  std::filesystem::path write(const std::string& name, std::string_view content) const;

 private:
  std::filesystem::path path_;
};

/// The whole file as bytes; throws std::runtime_error if it cannot be read.
std::string read_file(const std::filesystem::path& file);

}  // namespace petlab::testing
