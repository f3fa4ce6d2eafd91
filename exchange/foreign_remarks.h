#pragma once

#include <cstdint>
#include <filesystem>

#include "results/store.h"

namespace petlab::exchange {

/// Merges the tags and notes of another runs folder, for trials and sweeps in `store`. Merging
/// again changes nothing. Returns the number of new remarks. Throws as remark().
std::int64_t take_remarks(results::Store& store, const std::filesystem::path& runs,
                          const results::Reader& other, const std::filesystem::path& other_runs);

}  // namespace petlab::exchange
