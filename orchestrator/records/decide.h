#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "protocol/decisions.h"
#include "results/store.h"

namespace petlab::orchestrator {

/// Appends the decision to the trial's decisions.jsonl and syncs it, then stores it in a
/// transaction of its own. Throws std::invalid_argument where the database has no such trial, and
/// Error, base::Error and results::Error for files and the database.
void decide(results::Store& store, const std::filesystem::path& runs, const std::string& trial_id,
            const protocol::Decision& decision);
/// Likewise many decisions on trials that the database has: one sync and one transaction for all.
void decide(results::Store& store, const std::filesystem::path& runs,
            const std::vector<std::pair<std::string, protocol::Decision>>& decisions);
/// The part of decide() that stores.
void store_decision(results::Batch& batch, const std::string& trial_id,
                    const protocol::Decision& decision);

}  // namespace petlab::orchestrator
