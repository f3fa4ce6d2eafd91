#pragma once

#include <filesystem>
#include <vector>

#include "sweeps/locations.h"

namespace petlab::orchestrator {

/// Returns the folder of the GPU locks. If PETLAB_SLOTS is set, it is a folder for this user alone.
/// Otherwise all users of this host share it, so that no two of them use the same GPU:
/// `petlab-gpus` in the first of `places` that every user may write to (with the sticky bit, as
/// /tmp). Throws Error if there is no such place.
std::filesystem::path gpu_locks_folder(const sweeps::Environment& environment,
                                       const std::vector<std::filesystem::path>& places = {
                                           "/run/lock", "/tmp"});

/// Creates the folder if it is missing: for all users if all users may write to its parent,
/// otherwise for this user alone. Returns false on failure.
bool make_gpu_locks_folder(const std::filesystem::path& folder);

}  // namespace petlab::orchestrator
