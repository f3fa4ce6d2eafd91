#pragma once

#include <string>

namespace petlab::testing {

/// The exit code of a test program in which every case that ran was skipped and none failed: CTest
/// reports it as skipped.
inline constexpr int kSkippedExitCode = 77;

/// Marks the running case as skipped and prints why. The caller must then return from the case.
void skip(const std::string& why);

}  // namespace petlab::testing
