#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "orchestrator/planning/current_versions.h"

namespace CLI {
class App;
}

namespace petlab::cli {

/// The options of commands on what a database has already.
struct StoredArguments {
  std::string database;
  std::string runs;
  std::string worker;  // only where the command takes one
  std::string file;    // a sweep file beside which both are; only where the command takes one

  /// What the user named, else beside the sweep file, else petlab.db in this folder. Throws
  /// std::invalid_argument where there is none.
  std::filesystem::path database_path() const;
  /// Absolute: what the user named, else what the database remembers, else beside the sweep file or
  /// the database, with its name.
  std::filesystem::path runs_path() const;
  /// The same, for what reads or writes in it. Throws results::Error where it is not there.
  std::filesystem::path existing_runs_path() const;
};

/// --db and --runs.
void add_stored_arguments(CLI::App& app, StoredArguments& arguments);

/// --worker.
void add_worker_argument(CLI::App& app, StoredArguments& arguments);

/// What tells results that are stale: by the worker that the user named, else petlab-trainer where
/// it is found. Throws std::invalid_argument where the user named one that is not there.
orchestrator::CurrentVersions current_versions(const StoredArguments& arguments,
                                               const std::filesystem::path& runs);

/// The one command line word for a sweep file, optional.
void add_file_argument(CLI::App& app, StoredArguments& arguments);

}  // namespace petlab::cli
