#pragma once

#include <stdexcept>

namespace petlab::orchestrator {

/// A failure of a process, a lock or a file that the orchestrator needs. The message names the
/// subject, the problem and the fix.
struct Error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace petlab::orchestrator
