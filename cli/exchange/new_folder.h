#pragma once

#include <filesystem>
#include <string>

namespace petlab::cli {

/// A folder that gets its name when it is complete; removed where it did not come to that.
class NewFolder {
 public:
  /// Throws std::invalid_argument where the name is taken, results::Error where it cannot be made.
  explicit NewFolder(std::filesystem::path folder);
  ~NewFolder();
  NewFolder(const NewFolder&) = delete;
  NewFolder& operator=(const NewFolder&) = delete;

  /// Where it is filled.
  const std::filesystem::path& path() const { return made_; }
  /// Throws results::Error.
  void keep();

 private:
  std::filesystem::path folder_;
  std::filesystem::path made_;
};

}  // namespace petlab::cli
