#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "orchestrator/launching/worker_command.h"
#include "sweeps/locations.h"
#include "sweeps/sweep_file.h"

namespace CLI {
class App;
}

namespace petlab::cli {

/// The options that every command on a sweep file has.
struct SweepArguments {
  std::string file;
  std::string database;
  std::string runs;
  std::string worker;
  std::vector<std::string> set;  // `training.epochs=1`, for every trial

  /// The sweep as the file and --set say. Throws as sweeps::load_sweep().
  sweeps::Sweep load(const sweeps::Locations& locations) const;
  /// Where the user named none: beside the sweep file, with its name.
  std::filesystem::path database_path() const;
  /// Where the user named none: the one that the database remembers, else beside the sweep file.
  std::filesystem::path runs_path() const;
};

/// FILE, --db, --runs, --worker, --set.
void add_sweep_arguments(CLI::App& app, SweepArguments& arguments);

/// --retries; not all commands that have it take a sweep file.
void add_retries_option(CLI::App& app, std::optional<std::int64_t>& retries,
                        const std::string& help);

/// The worker that the user named, else petlab-trainer beside this program, else on PATH. Throws
/// std::invalid_argument where it is not there or may not be executed.
orchestrator::WorkerCommand worker_program(const std::string& named,
                                           const sweeps::Environment& environment);
/// For what needs no worker, where only what is stale for its numerics is not known without: the
/// same, and empty where the user named none and there is none.
orchestrator::WorkerCommand worker_if_any(const std::string& named,
                                          const sweeps::Environment& environment);

/// Whose `-check` program is to look at the files of the trials: the worker, and where there is
/// none yet the petlab-trainer that would be beside this program.
orchestrator::WorkerCommand worker_to_check(const orchestrator::WorkerCommand& worker);

}  // namespace petlab::cli
