#pragma once

#include <cstdint>
#include <filesystem>

#include "results/store.h"

namespace petlab::orchestrator {

/// Takes over the tags and notes that another runs folder has on trials and sweeps that `store`
/// knows, each exactly once: repeated it changes nothing. Returns how many came. Throws as
/// remark().
std::int64_t take_remarks(results::Store& store, const std::filesystem::path& runs,
                          const results::Reader& other, const std::filesystem::path& other_runs);

}  // namespace petlab::orchestrator
