#include "cli/decisions/retry.h"

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/decisions/decide_each.h"

namespace petlab::cli {
namespace {

struct RetryArguments : DecisionArguments {
  bool declare_dead = false;
};

}  // namespace

std::function<int()> make_retry(CLI::App& app, Streams streams) {
  const auto arguments = std::make_shared<RetryArguments>();
  add_decision_arguments(app, *arguments);
  app.add_flag("--declare-dead", arguments->declare_dead,
               "record an attempt on an unreachable host as dead");
  return [arguments, streams] {
    return decide_each(*arguments, streams, [&](const DecisionTarget& place) {
      return orchestrator::retry_trial(place.to, place.runs, place.trial_id,
                                       arguments->declare_dead, place.here, place.time);
    });
  };
}

}  // namespace petlab::cli
