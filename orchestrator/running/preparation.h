#pragma once

#include <filesystem>

#include "orchestrator/running/device_guard.h"
#include "orchestrator/running/run_context.h"
#include "orchestrator/running/run_state.h"

namespace petlab::orchestrator {

/// The checkpoint from which a claimed attempt is to resume; empty: it starts from the beginning.
std::filesystem::path checkpoint_of(const RunState& state, const LiveAttempt& live);

/// Creates the directory of a claimed attempt, with all that its worker needs to know. The attempt
/// has vanished if its checkpoint no longer exists.
void prepare(RunContext& context, RunState& state, LiveAttempt& live);

/// True if a claim of the slot will reach no worker: no more trials start in this run or in this
/// slot, the user has cancelled the trial, or its checkpoint no longer exists.
bool reaches_no_worker(const RunState& state, const DeviceGuard& guard, const WorkerSlot& slot,
                       const LiveAttempt& live);

}  // namespace petlab::orchestrator
