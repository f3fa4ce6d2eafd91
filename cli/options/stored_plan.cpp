#include "cli/options/stored_plan.h"

#include "orchestrator/host/process_identity.h"
#include "orchestrator/recovery/living_owners.h"

namespace petlab::cli {

orchestrator::TrialPlan stored_plan(const results::TrialFacts& facts, const std::string& sweep,
                                    const StoredArguments& arguments,
                                    std::optional<std::int64_t> retries) {
  orchestrator::PlanContext context;
  context.runs = arguments.runs_path();
  context.sweep = sweep;
  context.retries = retries;
  context.liveness = orchestrator::LivingOwners(context.runs, orchestrator::this_host());
  current_versions(arguments, context.runs).put_into(context, facts);
  return orchestrator::plan_trial({}, facts, context);
}

}  // namespace petlab::cli
