#pragma once

#include <string>

namespace petlab::base {

/// The exit code of a process that ended because an invariant did not hold.
constexpr int kBrokenInvariant = 70;

/// Prints one line on standard error and ends the process without destructors: what follows could
/// write something wrong. To others this is a crash, from which every run recovers.
[[noreturn]] void end_for_broken_invariant(const std::string& what, const char* file, int line);

}  // namespace petlab::base

/// Ends the process unless `condition` holds. `what` says what was found, and is only evaluated
/// then. Always on: for faults of petlab itself that would corrupt results if it continued. Names
/// the source without its folder: programs name no folder of the machine that built them.
#define PETLAB_INVARIANT(condition, what) \
  ((condition) ? static_cast<void>(0)     \
               : ::petlab::base::end_for_broken_invariant((what), __FILE_NAME__, __LINE__))
