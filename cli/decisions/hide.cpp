#include "cli/decisions/hide.h"

#include <CLI/CLI.hpp>
#include <memory>
#include <stdexcept>

#include "cli/decisions/decide_each.h"

namespace petlab::cli {
namespace {

struct HideArguments : DecisionArguments {
  std::string why;
  bool undo = false;
};

}  // namespace

std::function<int()> make_hide(CLI::App& app, Streams streams) {
  const auto arguments = std::make_shared<HideArguments>();
  add_decision_arguments(app, *arguments);
  CLI::Option* const why =
      app.add_option("--why", arguments->why, "the reason, recorded with the decision");
  app.add_flag("--undo", arguments->undo, "include hidden trials again")->excludes(why);
  return [arguments, streams] {
    if (arguments->undo == !arguments->why.empty()) {
      throw std::invalid_argument(
          "hide: --why is required, or --undo to include hidden trials again");
    }
    return decide_each(*arguments, streams, [&](const DecisionTarget& place) {
      return arguments->undo
                 ? orchestrator::unhide_trial(place.to, place.runs, place.trial_id, place.time)
                 : orchestrator::hide_trial(place.to, place.runs, place.trial_id, arguments->why,
                                            place.time);
    });
  };
}

}  // namespace petlab::cli
