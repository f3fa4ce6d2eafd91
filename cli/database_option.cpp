#include "cli/database_option.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

namespace petlab::cli {

std::filesystem::path database_to_read(const std::filesystem::path& named) {
  if (!named.empty()) return named;
  const std::filesystem::path usual = "petlab.db";
  std::error_code error;
  if (std::filesystem::exists(usual, error)) return usual;
  std::vector<std::string> others;
  for (std::filesystem::directory_iterator entry(".", error), end; !error && entry != end;
       entry.increment(error)) {
    if (entry->path().extension() == ".db") others.push_back(entry->path().filename().string());
  }
  std::sort(others.begin(), others.end());
  throw std::invalid_argument(
      others.empty()
          ? "--db is not given and there is no petlab.db here: name the database with --db"
          : fmt::format("--db is not given and there is no petlab.db here: name the database, for "
                        "example --db {}",
                        fmt::join(others, ", --db ")));
}

}  // namespace petlab::cli
