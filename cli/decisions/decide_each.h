#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cli/options/subcommand.h"
#include "cli/options/trial_arguments.h"
#include "orchestrator/recovery/control.h"

namespace petlab::cli {

/// The arguments of commands that decide on trials: cancel, retry.
struct DecisionArguments : StoredArguments {
  std::vector<std::string> trials;  // ids, or prefixes of them
};
void add_decision_arguments(CLI::App& app, DecisionArguments& arguments);

/// The trial that a decision changes, and the writer that records it.
struct DecisionTarget {
  const orchestrator::DecisionWriter& to;
  std::filesystem::path runs;
  std::string trial_id;
  orchestrator::HostIdentity here;
  double time = 0;
};

/// Decides on each trial and prints the result; kSomeFailed if one was not applied. Throws
/// std::invalid_argument before the first decision if an id is unknown or ambiguous.
int decide_each(const DecisionArguments& arguments, Streams streams,
                const std::function<orchestrator::DecisionResult(const DecisionTarget&)>& decide);

}  // namespace petlab::cli
