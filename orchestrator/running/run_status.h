#pragma once

#include "orchestrator/running/run_context.h"
#include "orchestrator/running/trial_table.h"
#include "orchestrator/running/worker_slot.h"

namespace petlab::orchestrator {

/// Computes a run's progress from its trials and slots.
RunStatus status_of(const RunContext& context, const TrialTable& trials, const SlotTable& slots,
                    std::int64_t finished_here);

}  // namespace petlab::orchestrator
