#pragma once

#include <stdexcept>

namespace petlab::orchestrator {

/// A process, a lock or a file of the runs folder that the orchestrator needs does not do what it
/// must. The message names the subject, what was found and what to do.
struct Error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace petlab::orchestrator
