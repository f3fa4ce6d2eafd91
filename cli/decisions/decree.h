#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cli/options/subcommand.h"
#include "cli/options/trial_arguments.h"
#include "orchestrator/recovery/control.h"

namespace petlab::cli {

/// The arguments of commands that decide on trials: cancel, retry.
struct DecreeArguments : StoredArguments {
  std::vector<std::string> trials;  // ids, or their beginnings
};
void add_decree_arguments(CLI::App& app, DecreeArguments& arguments);

/// Where a decision is made, and what of.
struct DecreePlace {
  const orchestrator::DecisionWriter& to;
  std::filesystem::path runs;
  std::string trial_id;
  orchestrator::HostIdentity here;
  double time = 0;
};

/// Decides on each trial and prints what came of it; kSomeFailed where one was not taken. Nothing
/// is decided where one of the ids is unknown or ambiguous: std::invalid_argument.
int decree_each(const DecreeArguments& arguments, Streams streams,
                const std::function<orchestrator::Decree(const DecreePlace&)>& decide);

}  // namespace petlab::cli
