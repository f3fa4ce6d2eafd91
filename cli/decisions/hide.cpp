#include "cli/decisions/hide.h"

#include <CLI/CLI.hpp>
#include <memory>
#include <stdexcept>

#include "cli/decisions/decree.h"

namespace petlab::cli {
namespace {

struct HideArguments : DecreeArguments {
  std::string why;
  bool undo = false;
};

}  // namespace

std::function<int()> make_hide(CLI::App& app, Streams streams) {
  const auto arguments = std::make_shared<HideArguments>();
  add_decree_arguments(app, *arguments);
  CLI::Option* const why =
      app.add_option("--why", arguments->why, "the reason, recorded with the decision");
  app.add_flag("--undo", arguments->undo, "include hidden trials again")->excludes(why);
  return [arguments, streams] {
    if (arguments->undo == !arguments->why.empty()) {
      throw std::invalid_argument(
          "hide: --why is required, or --undo to include hidden trials again");
    }
    return decree_each(*arguments, streams, [&](const DecreePlace& place) {
      return arguments->undo
                 ? orchestrator::unhide_trial(place.to, place.runs, place.trial_id, place.time)
                 : orchestrator::hide_trial(place.to, place.runs, place.trial_id, arguments->why,
                                            place.time);
    });
  };
}

}  // namespace petlab::cli
