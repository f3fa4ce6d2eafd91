#include "cli/exchange/rebuild.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>
#include <stdexcept>

#include "base/files.h"
#include "base/shown.h"
#include "cli/output/counted.h"
#include "orchestrator/records/rebuild.h"
#include "results/store.h"

namespace petlab::cli {
namespace {

std::filesystem::path runs_to_read(const StoredArguments& arguments) {
  const std::filesystem::path runs = runs_folder_of(arguments.database_path(), arguments.runs);
  if (std::filesystem::is_directory(runs)) return runs;
  throw std::invalid_argument(fmt::format(
      "{}: the folder does not exist; name the runs folder with --runs", runs.string()));
}

int print_summary_of_runs(const orchestrator::RunsSummary& summary,
                          const std::filesystem::path& database, const std::filesystem::path& runs,
                          bool json, Streams streams) {
  if (json) {
    const nlohmann::ordered_json document = {
        {"db", database.string()},  {"runs", runs.string()},        {"sweeps", summary.sweeps},
        {"trials", summary.trials}, {"attempts", summary.attempts}, {"events", summary.events},
        {"left", summary.left_out}};
    streams.out << document.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) << "\n";
    return summary.left_out.empty() ? kDone : kSomeFailed;
  }
  for (const std::string& problem : summary.left_out) {
    streams.err << "petlab: skipped: " << base::printable_message(problem) << '\n';
  }
  streams.out << fmt::format("{}: {}, {}, {}, {} from {}\n", database.string(),
                             counted(summary.sweeps, "sweep"), counted(summary.trials, "trial"),
                             counted(summary.attempts, "attempt"),
                             counted(summary.events, "new event"), runs.string());
  return summary.left_out.empty() ? kDone : kSomeFailed;
}

}  // namespace

int import_own_runs(const StoredArguments& arguments, bool json, Streams streams) {
  const std::filesystem::path database = arguments.database_path();
  const std::filesystem::path runs = runs_to_read(arguments);
  // The database must not have results that a power cut takes away from copied files.
  base::sync_file_system(runs);
  results::Store store(database);
  return print_summary_of_runs(orchestrator::ingest_runs(store, runs), database, runs, json,
                               streams);
}

std::function<int()> make_rebuild(CLI::App& app, Streams streams) {
  const auto arguments = std::make_shared<StoredArguments>();
  arguments->use = DatabaseUse::always_new;
  add_stored_arguments(app, *arguments);
  app.footer("The database must not exist: move a damaged one first.");
  return [arguments, streams] {
    const std::filesystem::path database = arguments->database_path();
    const std::filesystem::path runs = runs_to_read(*arguments);
    return print_summary_of_runs(orchestrator::rebuild(runs, database), database, runs, false,
                                 streams);
  };
}

}  // namespace petlab::cli
