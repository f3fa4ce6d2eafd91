#include "orchestrator/running/preparation.h"

#include "orchestrator/host/fault_point.h"
#include "orchestrator/records/attempt_directory.h"

namespace petlab::orchestrator {

std::filesystem::path checkpoint_of(const RunState& state, const LiveAttempt& live) {
  const auto& resume = state.trials.at(live.trial).plan.resume;
  if (!resume) return {};
  return (live.directory.folder() / resume->checkpoint).lexically_normal();
}

void prepare(RunContext& context, RunState& state, LiveAttempt& live) {
  fault_point("claimed");
  const sweeps::Sweep& sweep = context.input.sweep;
  const sweeps::SweepTrial& what = *state.trials.at(live.trial).what;
  protocol::TrialFile file;
  file.trial_id = live.attempt.trial_id;
  file.attempt = live.attempt.number;
  file.config = what.config;
  for (const std::string& task : what.config.tasks) {
    file.tasks.push_back(sweep.tasks.at(task));
    const auto digest = context.planning.data_digests.find(task);
    if (digest != context.planning.data_digests.end()) file.data_digests[task] = digest->second;
  }
  if (const std::string& backbone = what.config.backbone; !backbone.empty()) {
    file.backbone_folder = sweep.backbone_folders.at(backbone);
    file.backbone_digest = sweep.backbone_digests.at(backbone);
  }
  file.data_folders = context.input.locations.data_folders;
  file.threads = context.input.options.threads;
  const SlotDevice device = context.launcher.device(live.slot);
  file.device = device.kind;
  file.device_uuid = device.uuid;
  file.device_memory_mib = device.memory_mib;
  file.resume = live.begun.resume;
  const bool created =
      make_attempt_directory(live.directory, file, live.begun, checkpoint_of(state, live));
  live.become(created ? AttemptState::prepared : AttemptState::vanished);
  if (!created) return;
  fault_point("directory_made");
  state.attempts.watch(live);
}

bool reaches_no_worker(const RunState& state, const DeviceGuard& guard, const WorkerSlot& slot,
                       const LiveAttempt& live) {
  return !state.course.claiming() || slot.health.broken || slot.is_lost() ||
         guard.is_disabled(slot) || live.verdict == Verdict::cancelled ||
         live.state() == AttemptState::vanished;
}

}  // namespace petlab::orchestrator
