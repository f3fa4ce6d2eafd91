#pragma once

#include "orchestrator/running/run_context.h"
#include "orchestrator/running/trial_table.h"
#include "orchestrator/running/worker_slot.h"

namespace petlab::orchestrator {

/// Where a run is, from where its trials and slots are.
RunStatus status_of(const RunContext& context, const TrialTable& trials, const SlotTable& slots,
                    std::int64_t finished_here);

}  // namespace petlab::orchestrator
