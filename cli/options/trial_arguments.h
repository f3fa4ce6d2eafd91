#pragma once

#include <filesystem>
#include <functional>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "cli/options/database_option.h"
#include "cli/options/subcommand.h"
#include "orchestrator/planning/current_versions.h"
#include "results/scores.h"

namespace CLI {
class App;
class Validator;
}  // namespace CLI

namespace petlab::cli {

/// The options that say where a command's data are.
struct StoredArguments {
  std::string database;
  std::string runs;
  std::string worker;  // only if the command takes one
  std::string file;    // a sweep file, only if the command takes one
  DatabaseUse use = DatabaseUse::existing;
  std::ostream* err = nullptr;  // where the first database_path() prints find_database()'s note

  /// As find_database() finds it, once. Throws as that.
  std::filesystem::path database_path() const;
  /// Absolute, as runs_folder_of().
  std::filesystem::path runs_path() const;
  /// The same, for commands that read or write in it. Throws results::Error if it does not exist.
  std::filesystem::path existing_runs_path() const;

 private:
  mutable std::optional<std::filesystem::path> found_;
};

/// --db and --runs.
void add_stored_arguments(CLI::App& app, StoredArguments& arguments);

/// --worker.
void add_worker_argument(CLI::App& app, StoredArguments& arguments);

/// What tells results that are stale: by the worker that the user named, else petlab-trainer where
/// it is found. Throws std::invalid_argument where the user named one that is not there.
orchestrator::CurrentVersions current_versions(const StoredArguments& arguments,
                                               const std::filesystem::path& runs);

/// FILE, optional: the sweep file whose database is used, and to whose sweep the command is
/// limited.
void add_file_argument(CLI::App& app, StoredArguments& arguments, Streams streams);

/// Adds the condition that trials are members of the sweep in `file`, unless `file` is empty.
/// Throws as sweeps::sweep_name().
void add_sweep_condition(const std::string& file, std::vector<results::Condition>& where);

/// A transformation for options that take names of sweeps: replaces a sweep file by the name of its
/// sweep, and calls `found` with the file. Throws as sweeps::sweep_name().
CLI::Validator sweep_or_file(std::function<void(const std::string& file)> found);

/// Sets the database of a command that was given a sweep file and no --db.
void use_database_of(const std::string& sweep_file, std::string& database, Streams streams);

/// --sweep, repeatable: names of sweeps, or sweep files, of which the first also helps to find the
/// database. The options of add_stored_arguments() are added first.
void add_sweep_option(CLI::App& app, std::vector<std::string>& sweeps, StoredArguments& arguments,
                      Streams streams, const std::string& help);

}  // namespace petlab::cli
