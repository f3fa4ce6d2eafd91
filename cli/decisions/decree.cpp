#include "cli/decisions/decree.h"

#include <CLI/CLI.hpp>
#include <ostream>

#include "cli/options/open_to_write.h"
#include "orchestrator/host/wall_clock.h"

namespace petlab::cli {

void add_decree_arguments(CLI::App& app, DecreeArguments& arguments) {
  app.add_option("TRIAL", arguments.trials, "trial ids, or prefixes of them")->required();
  add_stored_arguments(app, arguments);
}

int decree_each(const DecreeArguments& arguments, Streams streams,
                const std::function<orchestrator::Decree(const DecreePlace&)>& decide) {
  const std::filesystem::path database = arguments.database_path();
  std::vector<std::string> ids;
  {
    const results::Reader reader(database);
    for (const std::string& text : arguments.trials) {
      ids.push_back(orchestrator::find_trial(reader, database, text));
    }
  }
  OpenToDecide opened(database, streams);
  const orchestrator::DecisionWriter to = opened.writer();
  const std::filesystem::path runs = arguments.existing_runs_path();
  const orchestrator::HostIdentity here = orchestrator::this_host();
  int code = kDone;
  for (const std::string& id : ids) {
    const orchestrator::Decree decree =
        decide({to, runs, id, here, orchestrator::wall_clock_seconds()});
    (decree.taken ? streams.out : streams.err) << id << " " << decree.text << "\n";
    if (!decree.taken) code = kSomeFailed;
  }
  if (!opened.delay().empty()) streams.err << "petlab: " << opened.delay() << "\n";
  return code;
}

}  // namespace petlab::cli
