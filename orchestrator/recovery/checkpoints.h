#pragma once

#include <filesystem>
#include <optional>

#include "results/attempt.h"

namespace petlab::orchestrator {

/// The checkpoint before `last` in an attempt's events.jsonl (the database keeps only the last
/// one), whether or not its file exists. An event whose path a later one names again is skipped:
/// its file has been replaced. std::nullopt if there is none or the file is missing. Throws
/// base::Error if the file cannot be read.
std::optional<results::CheckpointAt> checkpoint_before(const results::CheckpointAt& last,
                                                       const std::filesystem::path& events);

}  // namespace petlab::orchestrator
