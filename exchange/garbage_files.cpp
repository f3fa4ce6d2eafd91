#include "exchange/garbage_files.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <optional>
#include <system_error>

#include "exchange/error.h"

namespace petlab::exchange {
namespace {

namespace fs = std::filesystem;

/// What lstat reports about a name.
struct Named {
  std::uintmax_t bytes = 0;
  dev_t device = 0;
  ino_t inode = 0;
  nlink_t names = 0;
};
std::optional<Named> look_at_name(const fs::path& file) {
  struct stat status {};
  if (::lstat(file.c_str(), &status) != 0) return std::nullopt;
  return Named{static_cast<std::uintmax_t>(status.st_size), status.st_dev, status.st_ino,
               status.st_nlink};
}

}  // namespace

std::vector<fs::path> names_below(const fs::path& folder) {
  std::error_code error;
  const fs::file_type type = fs::symlink_status(folder, error).type();
  if (type == fs::file_type::symlink) return {folder};
  if (type != fs::file_type::directory) return {};
  std::vector<fs::path> found;
  for (fs::recursive_directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    if (entry->symlink_status(error).type() != fs::file_type::directory) {
      found.push_back(entry->path());
    }
  }
  if (error) throw Error(fmt::format("{}: cannot be read: {}", folder.string(), error.message()));
  std::sort(found.begin(), found.end());
  return found;
}

std::uintmax_t bytes_of(const fs::path& file) {
  std::uintmax_t bytes = 0;
  std::error_code error;
  if (fs::symlink_status(file, error).type() != fs::file_type::directory) {
    const auto named = look_at_name(file);
    return named ? named->bytes : 0;
  }
  for (const fs::path& each : names_below(file)) bytes += bytes_of(each);
  return bytes;
}

std::string plain_path(const fs::path& file) { return file.lexically_normal().string(); }

std::string real_path(const fs::path& file) {
  std::error_code error;
  const fs::path real = fs::weakly_canonical(file, error);
  return error ? plain_path(file) : real.string();
}

bool is_link(const fs::path& file) {
  std::error_code error;
  return fs::is_symlink(fs::symlink_status(file, error));
}

void FreedBytes::add(const fs::path& file) {
  std::error_code error;
  if (fs::symlink_status(file, error).type() == fs::file_type::directory) {
    for (const fs::path& each : names_below(file)) add(each);
    return;
  }
  const auto named = look_at_name(file);
  if (!named) return;
  Names& names = seen_[{named->device, named->inode}];
  names.bytes = named->bytes;
  names.all = named->names;
  ++names.going;
}

std::uintmax_t FreedBytes::total() const {
  std::uintmax_t bytes = 0;
  for (const auto& [file, names] : seen_) bytes += names.going >= names.all ? names.bytes : 0;
  return bytes;
}

}  // namespace petlab::exchange
