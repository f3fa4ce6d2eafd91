#pragma once

#include "base/error.h"

namespace petlab::sweeps {

/// A file that sweeps/ needs cannot be found, read, written or understood (a backbone's
/// config.json, a task's data). What the user wrote in a sweep file is a base::FileProblemsError
/// instead.
using Error = base::Error;

}  // namespace petlab::sweeps
