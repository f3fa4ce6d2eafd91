#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/options/trial_arguments.h"
#include "orchestrator/launching/worker_command.h"
#include "sweeps/locations.h"
#include "sweeps/sweep_file.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace petlab::cli {

/// The options that every command on a sweep file has.
struct SweepArguments : StoredArguments {
  SweepArguments() { use = DatabaseUse::may_create; }

  std::vector<std::string> set;  // `training.epochs=1`, for every trial

  /// The sweep as the file and --set say. Throws as sweeps::load_sweep().
  sweeps::Sweep load(const sweeps::Locations& locations) const;
};

/// FILE, --db, --runs, --worker, --set; the database may be created.
void add_sweep_arguments(CLI::App& app, SweepArguments& arguments, Streams streams);

/// --retries; not all commands that have it take a sweep file.
CLI::Option* add_retries_option(CLI::App& app, std::optional<std::int64_t>& retries,
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
