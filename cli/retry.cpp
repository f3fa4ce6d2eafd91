#include "cli/retry.h"

#include <CLI/CLI.hpp>
#include <memory>
#include <ostream>

#include "cli/trial_arguments.h"
#include "orchestrator/control.h"
#include "orchestrator/wall_clock.h"

namespace petlab::cli {
namespace {

struct Arguments : StoredArguments {
  std::vector<std::string> trials;
  bool declare_dead = false;
};

int retry(const Arguments& arguments, Streams streams) {
  const std::filesystem::path database = arguments.database_path();
  std::vector<std::string> ids;
  {
    const results::Reader reader(database);
    for (const std::string& text : arguments.trials) {
      ids.push_back(orchestrator::find_trial(reader, database, text));
    }
  }
  results::Store store(database);
  const orchestrator::HostIdentity here = orchestrator::this_host();
  int code = kDone;
  for (const std::string& id : ids) {
    const orchestrator::Decree decree =
        orchestrator::retry_trial(store, arguments.runs_path(), id, arguments.declare_dead, here,
                                  orchestrator::wall_clock_seconds());
    (decree.taken ? streams.out : streams.err) << id << " " << decree.text << "\n";
    if (!decree.taken) code = kSomeFailed;
  }
  return code;
}

}  // namespace

std::function<int()> make_retry(CLI::App& app, Streams streams) {
  const auto arguments = std::make_shared<Arguments>();
  app.add_option("TRIAL", arguments->trials, "ids of trials, or their beginnings")->required();
  app.add_flag("--declare-dead", arguments->declare_dead,
               "an attempt on another host, of which nothing is known here, is over");
  add_stored_arguments(app, *arguments);
  return [arguments, streams] { return retry(*arguments, streams); };
}

}  // namespace petlab::cli
