#include "cli/decisions/retry.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <ostream>
#include <stdexcept>

#include "cli/decisions/decide_each.h"
#include "orchestrator/recovery/evidence.h"
#include "results/database_held.h"

namespace petlab::cli {
namespace {

struct RetryArguments : DecisionArguments {
  bool declare_dead = false;
  std::string dead_host;
};

// The trials that a process on this host has not finished. Jobs of Slurm are not among them: Slurm
// knows which of its nodes are lost.
std::vector<std::string> unfinished_on(const std::string& host,
                                       const std::filesystem::path& database) {
  std::vector<std::string> trials;
  for (const results::AttemptFacts& open : results::Reader(database).open_attempts()) {
    if (open.begun.host == host && !orchestrator::in_queue(open.begun)) {
      trials.push_back(open.attempt.trial_id);
    }
  }
  return trials;
}

}  // namespace

std::function<int()> make_retry(CLI::App& app, Streams streams) {
  const auto arguments = std::make_shared<RetryArguments>();
  add_decision_arguments(app, *arguments);
  CLI::Option* const trial = app.get_option("TRIAL")->required(false);
  app.add_flag("--declare-dead", arguments->declare_dead,
               "record an attempt on an unreachable host as dead");
  app.add_option("--dead-host", arguments->dead_host,
                 "instead of trials: declare dead all that ran on this host")
      ->type_name("HOST")
      ->excludes(trial);
  return [arguments, streams]() -> int {
    if (!arguments->dead_host.empty()) {
      if (arguments->dead_host == orchestrator::this_host().host) {
        throw std::invalid_argument(fmt::format(
            "--dead-host is {}, which is this host: petlab run itself finds what is dead here",
            arguments->dead_host));
      }
      const std::filesystem::path database = arguments->database_path();
      results::release_database_of(arguments->dead_host, database);
      arguments->trials = unfinished_on(arguments->dead_host, database);
      arguments->declare_dead = true;
      if (arguments->trials.empty()) {
        streams.out << fmt::format("no attempt on {} is open\n", arguments->dead_host);
        return kDone;
      }
    }
    if (arguments->trials.empty()) {
      throw std::invalid_argument("TRIAL or --dead-host is required (see --help)");
    }
    return decide_each(*arguments, streams, [&](const DecisionTarget& place) {
      return orchestrator::retry_trial(place.to, place.runs, place.trial_id,
                                       arguments->declare_dead, place.here, place.time);
    });
  };
}

}  // namespace petlab::cli
