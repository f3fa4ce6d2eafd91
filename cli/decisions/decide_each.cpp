#include "cli/decisions/decide_each.h"

#include <CLI/CLI.hpp>
#include <ostream>

#include "cli/options/open_to_write.h"
#include "orchestrator/host/wall_clock.h"

namespace petlab::cli {

void add_decision_arguments(CLI::App& app, DecisionArguments& arguments) {
  app.add_option("TRIAL", arguments.trials, "trial ids, or prefixes of them")->required();
  add_stored_arguments(app, arguments);
}

int decide_each(const DecisionArguments& arguments, Streams streams,
                const std::function<orchestrator::DecisionResult(const DecisionTarget&)>& decide) {
  const std::filesystem::path database = arguments.database_path();
  std::vector<std::string> ids;
  {
    const results::Reader reader(database);
    for (const std::string& text : arguments.trials) {
      ids.push_back(orchestrator::find_trial(reader, database, text));
    }
  }
  OpenToDecide opened(database);
  const orchestrator::DecisionWriter to = opened.writer();
  const std::filesystem::path runs = arguments.existing_runs_path();
  const orchestrator::HostIdentity here = orchestrator::this_host();
  int code = kDone;
  for (const std::string& id : ids) {
    const orchestrator::DecisionResult result =
        decide({to, runs, id, here, orchestrator::wall_clock_seconds()});
    (result.applied ? streams.out : streams.err) << id << " " << result.text << "\n";
    if (!result.applied) code = kSomeFailed;
  }
  if (!opened.delay().empty()) streams.err << "petlab: " << opened.delay() << "\n";
  return code;
}

}  // namespace petlab::cli
