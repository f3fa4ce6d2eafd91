#pragma once

#include <stdexcept>

namespace petlab::sweeps {

/// A file that sweeps/ needs cannot be found, read, written or understood (a backbone's
/// config.json, a task's data, trial.json). What the user wrote in a sweep file is a SweepFileError
/// instead.
struct Error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace petlab::sweeps
