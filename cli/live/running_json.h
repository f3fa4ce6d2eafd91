#pragma once

#include <nlohmann/json.hpp>

#include "orchestrator/running/run.h"

namespace petlab::cli {

/// A running trial in the output of `petlab run --json` and `petlab status --json`. Unknown values
/// are omitted.
nlohmann::ordered_json running_json(const orchestrator::RunningTrial& trial);

}  // namespace petlab::cli
