#include "cli/options/sweep_arguments.h"

#include <CLI/CLI.hpp>
#include <stdexcept>

#include "base/programs.h"
#include "orchestrator/planning/worker_description.h"
#include "protocol/trial_directory.h"
#include "results/store.h"

namespace petlab::cli {

sweeps::Sweep SweepArguments::load(const sweeps::Locations& locations,
                                   const sweeps::Environment& environment) const {
  // What was planned with an earlier catalog comes first: the worker's must not contradict it.
  std::error_code unreadable;
  if (!worker.empty() && std::filesystem::exists(database_path(), unreadable)) {
    const results::Reader learned(database_path());
  }
  const std::string catalog = catalog_of_worker(worker, environment);
  sweeps::Sweep sweep = sweeps::load_sweep(file, locations, set, catalog);
  if (!sweep.study) return sweep;
  return sweeps::load_sweep(file, locations, set, catalog, protocol::sweeps_folder(runs_path()));
}

void add_sweep_arguments(CLI::App& app, SweepArguments& arguments, Streams streams) {
  arguments.err = &streams.err;
  app.add_option("FILE", arguments.file, "the sweep file")->required();
  add_stored_arguments(app, arguments);
  app.add_option("--worker", arguments.worker, "the training command (default: petlab-trainer)")
      ->type_name("COMMAND");
  app.add_option("--set", arguments.set, "set a field of all trials; this changes their ids")
      ->type_name("FIELD=VALUE")
      ->type_size(1)
      ->allow_extra_args(false);
}

CLI::Option* add_retries_option(CLI::App& app, std::optional<std::int64_t>& retries,
                                const std::string& help) {
  return app.add_option("--retries", retries, help)->check(CLI::Range(0, 1'000'000));
}

orchestrator::WorkerCommand worker_program(const std::string& named,
                                           const sweeps::Environment& environment) {
  const std::string search_path = environment("PATH").value_or("");
  if (!named.empty()) return orchestrator::find_worker(named, search_path);
  std::error_code error;
  const std::filesystem::path beside = base::next_to_this_program("petlab-trainer");
  if (std::filesystem::is_regular_file(beside, error)) return beside;
  try {
    return orchestrator::find_worker("petlab-trainer", search_path);
  } catch (const std::invalid_argument&) {
    throw std::invalid_argument(
        "petlab-trainer is neither next to petlab nor on PATH (building it needs LibTorch): "
        "install it, or name another worker with --worker");
  }
}

orchestrator::WorkerCommand worker_if_any(const std::string& named,
                                          const sweeps::Environment& environment) {
  try {
    return worker_program(named, environment);
  } catch (const std::invalid_argument&) {
    if (!named.empty()) throw;
    return {};
  }
}

std::string catalog_of_worker(const std::string& named, const sweeps::Environment& environment) {
  if (named.empty()) return {};
  return orchestrator::describe_worker(worker_program(named, environment),
                                       orchestrator::kDescribeTimeout)
      .catalog;
}

orchestrator::WorkerCommand worker_to_check(const orchestrator::WorkerCommand& worker) {
  return worker.empty() ? orchestrator::WorkerCommand(base::next_to_this_program("petlab-trainer"))
                        : worker;
}

}  // namespace petlab::cli
