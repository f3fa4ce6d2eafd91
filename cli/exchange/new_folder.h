#pragma once

#include <filesystem>
#include <string>

namespace petlab::cli {

/// A folder that is filled under a temporary name and renamed when complete. The destructor removes
/// it if keep() was not called.
class NewFolder {
 public:
  /// Throws std::invalid_argument if the name is in use, results::Error if the folder cannot be
  /// created.
  explicit NewFolder(std::filesystem::path folder);
  ~NewFolder();
  NewFolder(const NewFolder&) = delete;
  NewFolder& operator=(const NewFolder&) = delete;

  /// The temporary folder to fill.
  const std::filesystem::path& path() const { return temporary_; }
  /// Gives the folder its final name. Throws results::Error.
  void keep();

 private:
  std::filesystem::path folder_;
  std::filesystem::path temporary_;
};

}  // namespace petlab::cli
