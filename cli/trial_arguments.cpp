#include "cli/trial_arguments.h"

#include <CLI/CLI.hpp>

#include "cli/database_option.h"
#include "orchestrator/plan.h"

namespace petlab::cli {

std::filesystem::path StoredArguments::database_path() const {
  if (database.empty() && !file.empty()) return orchestrator::default_database(file);
  return database_to_read(database);
}

std::filesystem::path StoredArguments::runs_path() const {
  std::filesystem::path folder = runs;
  if (runs.empty() && !file.empty()) folder = orchestrator::default_runs(file);
  if (folder.empty()) folder = database_path().replace_extension(".runs");
  return std::filesystem::absolute(folder).lexically_normal();
}

void add_stored_arguments(CLI::App& app, StoredArguments& arguments) {
  app.add_option("--db", arguments.database, "the database (default: petlab.db in this folder)");
  app.add_option("--runs", arguments.runs,
                 "the folder of the trials' directories (default: beside the database, .runs)");
}

void add_file_argument(CLI::App& app, StoredArguments& arguments) {
  app.add_option("FILE", arguments.file, "a sweep file: its database and runs folder are meant")
      ->check(CLI::ExistingFile);
}

}  // namespace petlab::cli
