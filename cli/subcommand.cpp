#include "cli/subcommand.h"

#include <CLI/CLI.hpp>
#include <exception>
#include <ostream>
#include <stdexcept>
#include <string>

#include "cli/cancel.h"
#include "cli/explain.h"
#include "cli/ingest.h"
#include "cli/logs.h"
#include "cli/plan.h"
#include "cli/query.h"
#include "cli/report.h"
#include "cli/retry.h"
#include "cli/run.h"
#include "cli/score.h"
#include "cli/status.h"
#include "cli/stop.h"
#include "cli/storage.h"
#include "cli/version.h"

namespace petlab::cli {

std::span<const Subcommand> subcommands() {
  // In the order of the help. A new subcommand is a file with its `make` function, and a row here.
  static const std::vector<Subcommand> table = {
      {"plan", "say how many trials a sweep has, the state of each and why", make_plan},
      {"run", "train what a sweep has left", make_run},
      {"status", "say where sweeps are and what runs now", make_status},
      {"explain", "say why a trial is where it is, with its attempts", make_explain},
      {"logs", "print what a trial's worker printed", make_logs},
      {"cancel", "take trials out of their sweeps, also while they run", make_cancel},
      {"retry", "let trials be tried again that have failed or were cancelled", make_retry},
      {"stop", "ask the runs that go on to finish", make_stop},
      {"report", "make a table from the database", make_report},
      {"query", "ask the database in SQL, read-only", make_query},
      {"ingest", "read run directories into the database, or make it anew from them", make_ingest},
      {"score", "score predictions against references", make_score},
      {"storage", "bits that a trained module takes", make_storage},
  };
  return table;
}

int run(int argc, const char* const* argv, Streams streams) {
  CLI::App app("petlab runs ablation sweeps of parameter-efficient transfer learning", "petlab");
  app.set_version_flag("--version", std::string("petlab ") + kVersion);
  app.require_subcommand(1);
  std::function<int()> chosen;
  for (const Subcommand& row : subcommands()) {
    CLI::App* sub = app.add_subcommand(std::string(row.name), std::string(row.help));
    std::function<int()> body = row.make(*sub, streams);
    sub->callback([&chosen, body = std::move(body)] { chosen = body; });
  }
  try {
    app.parse(argc, argv);
    return chosen();
  } catch (const CLI::ParseError& error) {
    return app.exit(error, streams.out, streams.err) == 0 ? kDone : kUsage;
  } catch (const std::invalid_argument& error) {
    streams.err << "petlab: " << error.what() << "\n";
    return kUsage;
  } catch (const std::exception& error) {
    streams.err << "petlab: " << error.what() << "\n";
    return kSomeFailed;
  }
}

}  // namespace petlab::cli
