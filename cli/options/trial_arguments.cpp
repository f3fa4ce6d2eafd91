#include "cli/options/trial_arguments.h"

#include <CLI/CLI.hpp>

#include "cli/options/database_option.h"
#include "cli/options/sweep_arguments.h"
#include "orchestrator/planning/plan.h"

namespace petlab::cli {

std::filesystem::path StoredArguments::database_path() const {
  if (database.empty() && !file.empty()) return orchestrator::default_database(file);
  return database_to_read(database);
}

std::filesystem::path StoredArguments::runs_path() const {
  // With a folder that the user named no database need be there.
  const std::filesystem::path folder =
      !runs.empty() ? std::filesystem::path(runs)
                    : runs_folder_of(database_path(), "",
                                     file.empty() ? database_path().replace_extension(".runs")
                                                  : orchestrator::default_runs(file));
  return std::filesystem::absolute(folder).lexically_normal();
}

std::filesystem::path StoredArguments::existing_runs_path() const {
  const std::filesystem::path folder = runs_path();
  require_runs_folder(folder, database_path());
  return folder;
}

void add_stored_arguments(CLI::App& app, StoredArguments& arguments) {
  app.add_option("--db", arguments.database, "the database (default: petlab.db in this folder)");
  app.add_option("--runs", arguments.runs,
                 "the folder of the trials' directories (default: the one that the database "
                 "remembers, else beside it, .runs)");
}

void add_worker_argument(CLI::App& app, StoredArguments& arguments) {
  app.add_option("--worker", arguments.worker,
                 "whose numerics version tells what is stale (default: petlab-trainer beside this "
                 "program)");
}

orchestrator::CurrentVersions current_versions(const StoredArguments& arguments,
                                               const std::filesystem::path& runs) {
  const sweeps::Environment environment = sweeps::process_environment();
  return {runs, worker_if_any(arguments.worker, environment),
          sweeps::find_locations(environment).cache()};
}

void add_file_argument(CLI::App& app, StoredArguments& arguments) {
  app.add_option("FILE", arguments.file, "a sweep file: its database and runs folder are meant")
      ->check(CLI::ExistingFile);
}

}  // namespace petlab::cli
