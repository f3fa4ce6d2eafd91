#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace petlab::exchange {

// File system queries of petlab db gc. They do not follow links unless noted.

/// All names below a folder except folders, sorted; the path itself if it is a link; empty if it is
/// not a folder. Throws Error if the folder cannot be read completely.
std::vector<std::filesystem::path> names_below(const std::filesystem::path& folder);

/// The size of a file, or of all files below a folder. Throws as names_below().
std::uintmax_t bytes_of(const std::filesystem::path& file);

/// The path without "." and "..".
std::string plain_path(const std::filesystem::path& file);
/// The path with links resolved as far as it exists.
std::string real_path(const std::filesystem::path& file);
bool is_link(const std::filesystem::path& file);

/// Computes the disk space freed. A file with several names counts if all of them are deleted.
class FreedBytes {
 public:
  /// Adds a file, or all files of a folder. Throws as names_below().
  void add(const std::filesystem::path& file);
  std::uintmax_t total() const;

 private:
  struct Names {
    std::uintmax_t bytes = 0;
    nlink_t all = 0;
    nlink_t going = 0;
  };
  std::map<std::pair<dev_t, ino_t>, Names> seen_;
};

}  // namespace petlab::exchange
