#pragma once

namespace petlab::orchestrator {

/// Seconds since 1970, UTC. Only for records that people read, never for measuring durations: the
/// clock may jump.
double wall_clock_seconds();

}  // namespace petlab::orchestrator
