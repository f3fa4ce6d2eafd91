#pragma once

#include <nlohmann/json.hpp>

#include "orchestrator/running/run.h"

namespace petlab::cli {

/// A trial that runs, as `petlab run --json` and `petlab status --json` say it; what is not known
/// is left out.
nlohmann::ordered_json running_json(const orchestrator::RunningTrial& trial);

}  // namespace petlab::cli
