#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace petlab::orchestrator {

// What petlab db gc asks of a file system. Links are looked at, not followed, but where that is
// said.

/// Everything below a folder but folders, sorted; the folder itself where it is a link; nothing
/// where it is no folder. Throws Error where it cannot be read to its end.
std::vector<std::filesystem::path> names_below(const std::filesystem::path& folder);

/// Of a file, or of all that is below a folder, as their sizes say. Throws as names_below().
std::uintmax_t bytes_of(const std::filesystem::path& file);

/// Without "." and "..".
std::string plain_path(const std::filesystem::path& file);
/// Where a name leads to, its links followed as far as they lead anywhere.
std::string real_path(const std::filesystem::path& file);
bool is_link(const std::filesystem::path& file);

/// Counts what a disk gets back: of files that have several names, those that go with the last.
class FreedBytes {
 public:
  /// A file, or all of a folder. Throws as names_below().
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

}  // namespace petlab::orchestrator
