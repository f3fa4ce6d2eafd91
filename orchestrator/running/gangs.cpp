#include "orchestrator/running/gangs.h"

#include <vector>

#include "orchestrator/planning/gang_rule.h"
#include "sweeps/memory.h"

namespace petlab::orchestrator {

Gangs::Gangs(const RunContext& context, const RunState& state) : context_(context), state_(state) {
  if (context.input.options.most_in_gang > 1) {
    groups_ = gang_groups(context.input.options.gang_rule, context.input.sweep.trials);
  }
}

bool Gangs::may_join(const std::vector<std::size_t>& gang, std::size_t candidate,
                     const WorkerSlot& slot) const {
  if (groups_.empty() || gang.empty()) return true;
  // Trials at different steps share no pass, so one would wait for the other.
  const auto step = [this](std::size_t trial) {
    const std::optional<protocol::Resume>& resume = state_.trials.at(trial).plan.resume;
    return resume ? resume->step : 0;
  };
  return groups_[candidate] && groups_[candidate] == groups_[gang.front()] &&
         step(candidate) == step(gang.front()) && has_memory(gang, candidate, slot);
}

// On a GPU whose memory is known, the formula's memory of the whole gang must fit.
bool Gangs::has_memory(const std::vector<std::size_t>& gang, std::size_t candidate,
                       const WorkerSlot& slot) const {
  const std::int64_t most_mib = context_.launcher.device(slot.name).memory_mib;
  if (most_mib == 0 || !context_.input.options.has_memory_formula) return true;
  std::vector<sweeps::MemoryEstimate> estimates;
  const auto add = [&](std::size_t trial) {
    estimates.push_back(sweeps::estimate_memory(
        context_.input.sweep, state_.trials.at(trial).what->config, sweeps::MemoryDevice::gpu));
  };
  for (const std::size_t trial : gang) add(trial);
  add(candidate);
  return sweeps::with_margin(sweeps::to_mib(sweeps::gang_memory(estimates))) <= most_mib;
}

}  // namespace petlab::orchestrator
