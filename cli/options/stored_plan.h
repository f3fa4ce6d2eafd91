#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cli/options/trial_arguments.h"
#include "orchestrator/planning/plan.h"
#include "results/attempt.h"

namespace petlab::cli {

/// A trial's state and reason, as a run of the sweep would plan it. Throws as current_versions().
orchestrator::TrialPlan stored_plan(const results::TrialFacts& facts, const std::string& sweep,
                                    const StoredArguments& arguments,
                                    std::optional<std::int64_t> retries = {});

}  // namespace petlab::cli
