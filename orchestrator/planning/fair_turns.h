#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace petlab::orchestrator {

// Decides which of several runs on one host gets the next free slot, and which gives one up. Pure:
// no clock, no file. A run's fair share of the places in use is proportional to its weight, but no
// more than it needs. Runs come as near to it as whole slots allow, and take turns for the rest.

/// What a run needs, as it announces it to the other runs.
struct RunNeeds {
  std::string sweep;
  /// The cores or GPUs on which its slots may be. Only runs that have some in common compete.
  std::vector<std::string> places;
  std::int64_t places_of_slot = 1;  // the cores or GPUs of each slot
  std::int64_t holds = 0;           // slots that it has and means to keep
  std::int64_t wants = 0;           // further slots that it has trials for
  std::int64_t priority = 0;  // the highest of its waiting trials; each step doubles its weight
  bool nice = false;          // its share is what the runs that are not nice leave
  double served = 0;          // seconds of slots, divided by its weight
};

/// 2 to the power of the priority.
double weight_of(const RunNeeds& run);

/// The run that should get the next free slot rather than mine; nullptr: none. A pointer into
/// `others`.
const RunNeeds* goes_first(const RunNeeds& mine, const std::vector<RunNeeds>& others);

/// The run for which my run should give up a slot at these places (a core, or its GPUs), although
/// it could use it again; nullptr: none. `had_turn`: my run has had the slot long enough for a
/// turn.
const RunNeeds* should_get(const std::vector<std::string>& places, const RunNeeds& mine,
                           const std::vector<RunNeeds>& others, bool had_turn);

}  // namespace petlab::orchestrator
