#include "cli/decisions/discard.h"

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/decisions/decide_each.h"

namespace petlab::cli {
namespace {

struct DiscardArguments : DecisionArguments {
  std::string why;
};

}  // namespace

std::function<int()> make_discard(CLI::App& app, Streams streams) {
  const auto arguments = std::make_shared<DiscardArguments>();
  add_decision_arguments(app, *arguments);
  app.add_option("--why", arguments->why, "the reason, recorded with the decision")->required();
  app.footer(
      "The result no longer counts, and the next petlab run recomputes it. To keep the old result "
      "until the new one exists, use petlab run --rerun TRIAL.");
  return [arguments, streams] {
    return decide_each(*arguments, streams, [&](const DecisionTarget& place) {
      return orchestrator::discard_trial(place.to, place.runs, place.trial_id, arguments->why,
                                         place.time);
    });
  };
}

}  // namespace petlab::cli
