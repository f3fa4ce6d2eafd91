#pragma once

#include <filesystem>
#include <string>

#include "protocol/decisions.h"
#include "results/store.h"

namespace petlab::orchestrator {

/// Appends the decision to the trial's decisions.jsonl and syncs it, then stores it in a
/// transaction of its own. Throws std::invalid_argument where the database has no such trial, and
/// Error, base::Error and results::Error for files and the database.
void decide(results::Store& store, const std::filesystem::path& runs, const std::string& trial_id,
            const protocol::Decision& decision);
/// The part of decide() that stores.
void store_decision(results::Batch& batch, const std::string& trial_id,
                    const protocol::Decision& decision);

}  // namespace petlab::orchestrator
