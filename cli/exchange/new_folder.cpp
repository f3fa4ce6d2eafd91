#include "cli/exchange/new_folder.h"

#include <fmt/format.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <system_error>

#include "base/files.h"
#include "results/error.h"

namespace petlab::cli {

NewFolder::NewFolder(std::filesystem::path folder)
    : folder_(folder.has_filename() ? std::move(folder) : folder.parent_path()) {
  std::error_code error;
  if (std::filesystem::exists(std::filesystem::symlink_status(folder_, error))) {
    throw std::invalid_argument(
        fmt::format("{}: already exists; move it, or name another folder", folder_.string()));
  }
  std::string name = folder_.string() + ".XXXXXX";
  if (::mkdtemp(name.data()) == nullptr || ::chmod(name.c_str(), 0755) != 0) {
    throw results::Error(
        fmt::format("{}: cannot be created: {}", folder_.string(), std::strerror(errno)));
  }
  temporary_ = name;
}

NewFolder::~NewFolder() {
  std::error_code ignored;
  if (!temporary_.empty()) std::filesystem::remove_all(temporary_, ignored);
}

void NewFolder::keep() {
  if (const int error = base::give_new_name(temporary_, folder_); error != 0) {
    throw results::Error(
        fmt::format("{}: cannot be created: {}", folder_.string(), std::strerror(error)));
  }
  temporary_.clear();
}

}  // namespace petlab::cli
