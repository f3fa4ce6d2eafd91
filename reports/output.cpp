#include "reports/output.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/files.h"
#include "reports/error.h"

namespace petlab::reports {
std::vector<std::filesystem::path> write_files(const Table& table,
                                               const std::filesystem::path& folder,
                                               std::span<const Format* const> formats) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (!std::filesystem::is_directory(folder)) {
    throw Error(fmt::format(
        "{}: cannot make the folder: {}; name another with --out", folder.string(),
        std::filesystem::exists(folder) ? "there is a file of that name" : error.message()));
  }
  std::vector<std::filesystem::path> written;
  for (const Format* format : formats) {
    const std::filesystem::path target = folder / (table.name + std::string(format->extension));
    try {
      base::write_file_atomically(target, format->render(table, {}));
    } catch (const base::Error& wrong) {
      throw Error(fmt::format("{}; name another folder with --out", wrong.what()));
    }
    written.push_back(target);
  }
  return written;
}

}  // namespace petlab::reports
