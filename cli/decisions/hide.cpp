#include "cli/decisions/hide.h"

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/decisions/decree.h"

namespace petlab::cli {
namespace {

struct HideArguments : DecreeArguments {
  std::string why;
};

}  // namespace

std::function<int()> make_hide(CLI::App& app, Streams streams) {
  const auto arguments = std::make_shared<HideArguments>();
  add_decree_arguments(app, *arguments);
  app.add_option("--why", arguments->why, "why it is not to be seen; kept with the decision")
      ->required();
  return [arguments, streams] {
    return decree_each(*arguments, streams, [&](const DecreePlace& place) {
      return orchestrator::hide_trial(place.to, place.runs, place.trial_id, arguments->why,
                                      place.time);
    });
  };
}

std::function<int()> make_unhide(CLI::App& app, Streams streams) {
  const auto arguments = std::make_shared<DecreeArguments>();
  add_decree_arguments(app, *arguments);
  return [arguments, streams] {
    return decree_each(*arguments, streams, [](const DecreePlace& place) {
      return orchestrator::unhide_trial(place.to, place.runs, place.trial_id, place.time);
    });
  };
}

}  // namespace petlab::cli
