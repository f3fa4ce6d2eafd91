#pragma once

namespace petlab::orchestrator {

/// Seconds since 1970, UTC: for records that people read, never for deciding how long something
/// took (the clock may jump).
double wall_clock_seconds();

}  // namespace petlab::orchestrator
