#include "cli/exchange/ingest.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <ostream>

#include "base/shown.h"
#include "cli/options/database_option.h"
#include "cli/options/open_to_write.h"
#include "cli/output/counted.h"
#include "orchestrator/records/rebuild.h"
#include "results/store.h"

namespace petlab::cli {
namespace {

struct IngestOptions {
  std::filesystem::path database;
  std::filesystem::path runs;
  bool rebuild = false;
};

int ingest(const IngestOptions& options, Streams streams) {
  std::filesystem::path database = options.database;
  if (database.empty()) {
    database = options.rebuild ? std::filesystem::path("petlab.db") : database_to_read("");
  }
  const std::filesystem::path runs = runs_folder_of(
      database, options.runs, std::filesystem::path(database).replace_extension(".runs"));
  if (!std::filesystem::is_directory(runs)) {
    throw std::invalid_argument(fmt::format(
        "{}: there is no such folder; name the runs folder with --runs", runs.string()));
  }
  orchestrator::RunsSummary summary;
  if (options.rebuild) {
    summary = orchestrator::rebuild(runs, database);
  } else {
    results::Store store = open_to_write(database, streams);
    summary = orchestrator::ingest_runs(store, runs);
  }
  for (const std::string& problem : summary.left_out) {
    streams.err << "petlab: left out: " << base::printable_message(problem) << '\n';
  }
  streams.out << fmt::format("{}: {}, {}, {}, {} from {}\n", database.string(),
                             counted(summary.sweeps, "sweep"), counted(summary.trials, "trial"),
                             counted(summary.attempts, "attempt"),
                             counted(summary.events, "new event"), runs.string());
  return summary.left_out.empty() ? kDone : kSomeFailed;
}

}  // namespace

std::function<int()> make_ingest(CLI::App& app, Streams streams) {
  auto options = std::make_shared<IngestOptions>();
  app.add_option("--db", options->database, "the database (default: petlab.db in this folder)");
  app.add_option("--runs", options->runs,
                 "the runs folder (default: the one that the database remembers, else beside it, "
                 "its name with .runs)");
  app.add_flag("--rebuild", options->rebuild,
               "make the database anew; it must not exist (move the old one away)");
  return [options, streams] { return ingest(*options, streams); };
}

}  // namespace petlab::cli
