#include "cli/options/database_option.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "results/store.h"
#include "sweeps/locations.h"

namespace petlab::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kUsualName = "petlab.db";
constexpr const char* kDatabaseHelp = "database (default: PETLAB_DB or nearest petlab.db)";

// A link with a missing target counts as existing, so that no other database takes its place.
bool file_exists(const fs::path& file) {
  std::error_code error;
  return fs::exists(fs::symlink_status(file, error));
}

bool everybody_may_write(const fs::path& folder) {
  std::error_code error;
  const fs::perms rights = fs::status(folder, error).permissions();
  return rights != fs::perms::unknown && (rights & fs::perms::others_write) != fs::perms::none;
}

std::optional<fs::path> nearest(const fs::path& folder) {
  if (file_exists(folder / kUsualName)) return kUsualName;
  for (fs::path below = folder; below.has_relative_path();) {
    const fs::path above = below.parent_path();
    if (file_exists(above / kUsualName) && !everybody_may_write(above)) return above / kUsualName;
    below = above;
  }
  return std::nullopt;
}

[[noreturn]] void no_database(const fs::path& folder) {
  std::vector<std::string> others;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    if (entry->path().extension() == ".db") others.push_back(entry->path().filename().string());
  }
  std::sort(others.begin(), others.end());
  std::string text =
      "found no petlab.db in this folder or above it; petlab run creates one. To use another "
      "database, pass --db or set PETLAB_DB";
  if (!others.empty()) {
    text += fmt::format(" (this folder has {})", fmt::join(others, ", "));
  }
  throw std::invalid_argument(text);
}

}  // namespace

FoundDatabase find_database(const DatabaseSearch& search, DatabaseUse use) {
  if (!search.named.empty()) return {search.named, ""};
  if (!search.variable.empty()) {
    if (use == DatabaseUse::existing && !file_exists(search.folder / search.variable)) {
      throw std::invalid_argument(
          fmt::format("PETLAB_DB is {}, which does not exist; petlab run creates it, --db names "
                      "another database",
                      search.variable));
    }
    return {search.variable, ""};
  }
  if (use == DatabaseUse::always_new) return {kUsualName, ""};
  const std::optional<fs::path> usual = nearest(search.folder);
  if (!search.sweep_file.empty()) {
    const fs::path beside = fs::path(search.sweep_file).replace_extension(".db");
    std::error_code error;
    const bool same =
        usual && fs::equivalent(search.folder / beside, search.folder / *usual, error);
    if (file_exists(search.folder / beside) && !same) {
      return {beside, fmt::format("using {}, which is next to the sweep file{}", beside.string(),
                                  usual ? fmt::format(", instead of {}; --db selects another",
                                                      usual->string())
                                        : "")};
    }
  }
  if (usual) return {*usual, ""};
  if (use == DatabaseUse::existing) no_database(search.folder);
  return {kUsualName, ""};
}

FoundDatabase find_database(const std::string& named, DatabaseUse use,
                            const std::filesystem::path& sweep_file) {
  std::error_code error;  // a removed current folder contains no databases
  return find_database({named, sweeps::process_environment()("PETLAB_DB").value_or(""), sweep_file,
                        fs::current_path(error)},
                       use);
}

std::filesystem::path database_to_read(const std::filesystem::path& named) {
  return find_database(named.string(), DatabaseUse::existing).file;
}

void learn_declared_words(const std::filesystem::path& named) {
  std::filesystem::path database;
  try {
    database = database_to_read(named);
  } catch (const std::invalid_argument&) {
    if (!named.empty()) throw;
    return;
  }
  results::Reader{database};  // opening it does that
}

void add_database_option(CLI::App& app, std::string& database) {
  app.add_option("--db", database, kDatabaseHelp)->type_name("FILE");
}

void add_database_option(CLI::App& app, std::filesystem::path& database) {
  app.add_option("--db", database, kDatabaseHelp)->type_name("FILE");
}

std::filesystem::path runs_folder_of(const std::filesystem::path& database,
                                     const std::filesystem::path& named) {
  if (!named.empty()) return named;
  const fs::path beside = fs::path(database).replace_extension(".runs");
  std::error_code error;
  if (!fs::exists(database, error)) return beside;
  return results::Reader(database).runs_folder().value_or(beside);
}

bool remembers_runs(const std::filesystem::path& database) {
  std::error_code error;
  return std::filesystem::exists(database, error) && results::Reader(database).runs_folder();
}

std::string runs_folder_gone() {
  return "the runs folder is missing: logs, checkpoints and artifacts were in it, scores are in "
         "the database; restore it, or name it with --runs";
}

void require_runs_folder(const std::filesystem::path& runs, const std::filesystem::path& database) {
  std::error_code error;
  if (std::filesystem::is_directory(runs, error)) return;
  throw results::Error(
      fmt::format("{}: the runs folder of {} is missing; restore it, or name it with --runs",
                  runs.string(), database.string()));
}

}  // namespace petlab::cli
