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

/// The options of every command that takes a sweep file.
struct SweepArguments : StoredArguments {
  SweepArguments() { use = DatabaseUse::may_create; }

  std::vector<std::string> set;  // overrides for every trial, such as `training.epochs=1`

  /// Loads the sweep file with the catalog of the worker that the user named and the points that
  /// the runs folder records of a search by TPE, and applies --set.
  /// Throws as sweeps::load_sweep() and orchestrator::describe_worker().
  sweeps::Sweep load(const sweeps::Locations& locations,
                     const sweeps::Environment& environment) const;
};

/// Adds FILE, --db, --runs, --worker and --set. The database may be created.
void add_sweep_arguments(CLI::App& app, SweepArguments& arguments, Streams streams);

/// Adds --retries. Some commands with this option take no sweep file.
CLI::Option* add_retries_option(CLI::App& app, std::optional<std::int64_t>& retries,
                                const std::string& help);

/// The worker that the user named, else petlab-trainer next to this program, else on PATH. Throws
/// std::invalid_argument if it does not exist or is not executable.
orchestrator::WorkerCommand worker_program(const std::string& named,
                                           const sweeps::Environment& environment);
/// Like worker_program(), but empty if the user named no worker and none is found: only staleness
/// by numerics depends on the worker.
orchestrator::WorkerCommand worker_if_any(const std::string& named,
                                          const sweeps::Environment& environment);

/// The id of the catalog that a worker declares; empty if it declares none, or if the user named no
/// worker. Throws as worker_program() and orchestrator::describe_worker().
std::string catalog_of_worker(const std::string& named, const sweeps::Environment& environment);

/// The worker whose `-check` program checks the files of the trials: `worker`, or if empty the path
/// of petlab-trainer next to this program.
orchestrator::WorkerCommand worker_to_check(const orchestrator::WorkerCommand& worker);

}  // namespace petlab::cli
