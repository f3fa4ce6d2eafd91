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
#include "results/is_alive.h"
#include "results/scores.h"

namespace CLI {
class App;
class Validator;
}  // namespace CLI

namespace petlab::cli {

/// Options for the locations of a command's data.
struct StoredArguments {
  std::string database;
  std::string runs;
  std::string worker;  // only if the command takes one
  std::string file;    // a sweep file, only if the command takes one
  DatabaseUse use = DatabaseUse::existing;
  std::ostream* err = nullptr;  // receives find_database()'s note at the first database_path()

  /// The result of find_database(), computed once. Throws as find_database().
  std::filesystem::path database_path() const;
  /// The absolute path of runs_folder_of().
  std::filesystem::path runs_path() const;
  /// Like runs_path(), for commands that read or write in it. Throws results::Error if it does not
  /// exist.
  std::filesystem::path existing_runs_path() const;

 private:
  mutable std::optional<std::filesystem::path> found_;
};

/// True for attempts whose orchestrator is alive now, or may be. Reads the locks of the runs
/// folder.
results::IsAlive living_in(const std::filesystem::path& runs);

/// --db and --runs.
void add_stored_arguments(CLI::App& app, StoredArguments& arguments);

/// --worker.
void add_worker_argument(CLI::App& app, StoredArguments& arguments);

/// The current versions by which results are stale: those of the worker that the user named, else
/// of petlab-trainer if found. Throws std::invalid_argument if the named worker does not exist.
orchestrator::CurrentVersions current_versions(const StoredArguments& arguments,
                                               const std::filesystem::path& runs);

/// FILE, optional: selects the sweep file's database and limits the command to its sweep.
void add_file_argument(CLI::App& app, StoredArguments& arguments, Streams streams);

/// Adds the condition that trials are members of the sweep in `file`, unless `file` is empty.
/// Throws as sweeps::sweep_name().
void add_sweep_condition(const std::string& file, std::vector<results::Condition>& where);

/// A transformation for options that take sweep names: replaces a sweep file by its sweep's name
/// and calls `found` with the file. Throws as sweeps::sweep_name().
CLI::Validator sweep_or_file(std::function<void(const std::string& file)> found);

/// Sets the database if the command was given a sweep file and no --db.
void use_database_of(const std::string& sweep_file, std::string& database, Streams streams);

/// --sweep, repeatable: sweep names, or sweep files, the first of which helps to find the database.
/// Call after add_stored_arguments().
void add_sweep_option(CLI::App& app, std::vector<std::string>& sweeps, StoredArguments& arguments,
                      Streams streams, const std::string& help);

}  // namespace petlab::cli
