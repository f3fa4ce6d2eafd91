#pragma once

#include "base/error.h"

namespace petlab::sweeps {

/// A file cannot be found, read, written or parsed (a backbone's config.json, a task's data).
/// Errors in sweep files are base::FileProblemsError instead.
using Error = base::Error;

}  // namespace petlab::sweeps
