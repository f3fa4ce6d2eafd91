#pragma once

#include <cstdint>

#include "orchestrator/running/run_context.h"
#include "orchestrator/running/run_state.h"

namespace petlab::orchestrator {

/// Computes a run's progress from its trials and slots.
RunStatus status_of(const RunContext& context, const RunState& state, std::int64_t finished_here);

}  // namespace petlab::orchestrator
