#include "base/temporary_folder.h"

#include <fmt/format.h>
#include <stdlib.h>

#include <cerrno>
#include <cstring>
#include <system_error>

#include "base/error.h"

namespace petlab::base {

TemporaryFolder::TemporaryFolder(const std::string& purpose) {
  std::error_code error;
  std::string name = (std::filesystem::temp_directory_path(error) / (purpose + "-XXXXXX")).string();
  if (error || ::mkdtemp(name.data()) == nullptr) {
    throw Error(
        fmt::format("{}: the folder cannot be created: {}; choose another place with TMPDIR", name,
                    error ? error.message() : std::strerror(errno)));
  }
  path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace petlab::base
