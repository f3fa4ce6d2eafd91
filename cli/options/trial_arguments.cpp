#include "cli/options/trial_arguments.h"

#include <CLI/CLI.hpp>
#include <memory>
#include <ostream>
#include <utility>

#include "base/shown.h"
#include "cli/options/sweep_arguments.h"
#include "orchestrator/host/process_identity.h"
#include "orchestrator/recovery/living_owners.h"
#include "sweeps/sweep_file.h"

namespace petlab::cli {
namespace {

bool is_sweep_file(const std::string& text) {
  const std::filesystem::path file(text);
  std::error_code error;
  return (file.extension() == ".yaml" || file.extension() == ".yml") &&
         std::filesystem::is_regular_file(file, error);
}

}  // namespace

std::filesystem::path StoredArguments::database_path() const {
  if (!found_) {
    FoundDatabase found = find_database(database, use, file);
    if (!found.note.empty() && err != nullptr) {
      *err << "petlab: " << base::printable_message(found.note) << '\n';
    }
    found_ = std::move(found.file);
  }
  return *found_;
}

std::filesystem::path StoredArguments::runs_path() const {
  // With --runs no database is needed.
  const std::filesystem::path folder =
      !runs.empty() ? std::filesystem::path(runs) : runs_folder_of(database_path(), "");
  return std::filesystem::absolute(folder).lexically_normal();
}

std::filesystem::path StoredArguments::existing_runs_path() const {
  const std::filesystem::path folder = runs_path();
  require_runs_folder(folder, database_path());
  return folder;
}

results::IsAlive living_in(const std::filesystem::path& runs) {
  const auto owners = std::make_shared<orchestrator::LivingOwners>(runs, orchestrator::this_host());
  return [owners](const results::AttemptFacts& attempt) {
    return (*owners)(attempt) != orchestrator::Liveness::dead;
  };
}

void add_stored_arguments(CLI::App& app, StoredArguments& arguments) {
  add_database_option(app, arguments.database);
  app.add_option("--runs", arguments.runs, "the runs folder (default: next to the database)")
      ->type_name("FOLDER");
}

void add_worker_argument(CLI::App& app, StoredArguments& arguments) {
  app.add_option("--worker", arguments.worker, "the worker that decides what is stale")
      ->type_name("COMMAND");
}

orchestrator::CurrentVersions current_versions(const StoredArguments& arguments,
                                               const std::filesystem::path& runs) {
  const sweeps::Environment environment = sweeps::process_environment();
  return {runs, worker_if_any(arguments.worker, environment),
          sweeps::find_locations(environment).cache()};
}

void add_file_argument(CLI::App& app, StoredArguments& arguments, Streams streams) {
  arguments.err = &streams.err;
  app.add_option("FILE", arguments.file, "a sweep file: only its sweep (default: all sweeps)")
      ->check(CLI::ExistingFile);
}

void add_sweep_condition(const std::string& file, std::vector<results::Condition>& where) {
  if (file.empty()) return;
  where.push_back({results::word_named("sweep"),
                   results::Condition::Op::equal,
                   {results::Value(sweeps::sweep_name(file))}});
}

CLI::Validator sweep_or_file(std::function<void(const std::string& file)> found) {
  return CLI::Validator(
      [found = std::move(found)](std::string& text) {
        if (is_sweep_file(text)) {
          const std::string file = std::exchange(text, sweeps::sweep_name(text));
          found(file);
        }
        return std::string();
      },
      "");
}

void use_database_of(const std::string& sweep_file, std::string& database, Streams streams) {
  if (!database.empty()) return;
  StoredArguments arguments;
  arguments.file = sweep_file;
  arguments.err = &streams.err;
  database = arguments.database_path().string();
}

void add_sweep_option(CLI::App& app, std::vector<std::string>& sweeps, StoredArguments& arguments,
                      Streams streams, const std::string& help) {
  arguments.err = &streams.err;
  app.add_option("--sweep", sweeps, help)
      ->type_name("SWEEP")
      ->type_size(1)
      ->allow_extra_args(false)
      ->transform(sweep_or_file([&arguments](const std::string& file) {
        if (arguments.file.empty()) arguments.file = file;
      }));
}

}  // namespace petlab::cli
