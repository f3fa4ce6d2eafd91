#include "cli/options/sweep_arguments.h"

#include <CLI/CLI.hpp>
#include <stdexcept>

#include "cli/options/database_option.h"
#include "cli/options/program_places.h"
#include "orchestrator/planning/plan.h"

namespace petlab::cli {

sweeps::Sweep SweepArguments::load(const sweeps::Locations& locations) const {
  return sweeps::load_sweep(file, locations, set);
}

std::filesystem::path SweepArguments::database_path() const {
  return database.empty() ? orchestrator::default_database(file) : std::filesystem::path(database);
}

std::filesystem::path SweepArguments::runs_path() const {
  return runs_folder_of(database_path(), runs, orchestrator::default_runs(file));
}

void add_sweep_arguments(CLI::App& app, SweepArguments& arguments) {
  app.add_option("FILE", arguments.file, "the sweep file")->required();
  app.add_option("--db", arguments.database, "the database (default: beside FILE, .db)");
  app.add_option("--runs", arguments.runs,
                 "the folder of the trials' directories (default: the one that the database "
                 "remembers, else beside FILE, .runs)");
  app.add_option("--worker", arguments.worker,
                 "the program that trains, with its arguments: \"python3 worker.py\" (default: "
                 "petlab-trainer beside this program)");
  app.add_option(
         "--set", arguments.set,
         "sets a field for every trial, whatever FILE says of it: training.epochs=1; may be "
         "repeated. These are other trials than without")
      ->type_size(1)
      ->allow_extra_args(false);
}

void add_retries_option(CLI::App& app, std::optional<std::int64_t>& retries,
                        const std::string& help) {
  app.add_option("--retries", retries, help)->check(CLI::Range(0, 1'000'000));
}

orchestrator::WorkerCommand worker_program(const std::string& named,
                                           const sweeps::Environment& environment) {
  const std::string search_path = environment("PATH").value_or("");
  if (!named.empty()) return orchestrator::find_worker(named, search_path);
  std::error_code error;
  const std::filesystem::path beside = beside_this_program("petlab-trainer");
  if (std::filesystem::is_regular_file(beside, error)) return beside;
  try {
    return orchestrator::find_worker("petlab-trainer", search_path);
  } catch (const std::invalid_argument&) {
    throw std::invalid_argument(
        "petlab-trainer is neither beside petlab nor on PATH (it is built where LibTorch is "
        "found): --worker names another worker");
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

orchestrator::WorkerCommand worker_to_check(const orchestrator::WorkerCommand& worker) {
  return worker.empty() ? orchestrator::WorkerCommand(beside_this_program("petlab-trainer"))
                        : worker;
}

}  // namespace petlab::cli
