#include "cli/decisions/cancel.h"

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/decisions/decide_each.h"

namespace petlab::cli {

std::function<int()> make_cancel(CLI::App& app, Streams streams) {
  const auto arguments = std::make_shared<DecisionArguments>();
  add_decision_arguments(app, *arguments);
  return [arguments, streams] {
    return decide_each(*arguments, streams, [](const DecisionTarget& place) {
      return orchestrator::cancel_trial(place.to, place.runs, place.trial_id, place.here,
                                        place.time);
    });
  };
}

}  // namespace petlab::cli
