#include "cli/options/database_option.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

#include "results/store.h"

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

std::filesystem::path runs_folder_of(const std::filesystem::path& database,
                                     const std::filesystem::path& named,
                                     const std::filesystem::path& otherwise) {
  if (!named.empty()) return named;
  std::error_code error;
  if (!std::filesystem::exists(database, error)) return otherwise;
  return results::Reader(database).runs_folder().value_or(otherwise);
}

bool remembers_runs(const std::filesystem::path& database) {
  std::error_code error;
  return std::filesystem::exists(database, error) && results::Reader(database).runs_folder();
}

std::string runs_folder_gone() {
  return "the runs folder is not there: logs, checkpoints and artifacts were in it, scores are in "
         "the database; put it back, or name it with --runs";
}

void require_runs_folder(const std::filesystem::path& runs, const std::filesystem::path& database) {
  std::error_code error;
  if (std::filesystem::is_directory(runs, error)) return;
  throw results::Error(
      fmt::format("{}: the runs folder of {} is not there; put it back, or name it with --runs",
                  runs.string(), database.string()));
}

}  // namespace petlab::cli
