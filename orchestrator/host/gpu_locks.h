#pragma once

#include <filesystem>
#include <vector>

#include "sweeps/locations.h"

namespace petlab::orchestrator {

/// The folder of the GPUs' locks: PETLAB_SLOTS where that is set, for this user alone; else one
/// that all users of this host share, so that no two take the same GPU: `petlab-gpus` in the first
/// of `places` where there can be one that every user may write (with the sticky bit, as /tmp).
/// Throws Error where there can be none.
std::filesystem::path gpu_locks_folder(const sweeps::Environment& environment,
                                       const std::vector<std::filesystem::path>& places = {
                                           "/run/lock", "/tmp"});

/// Makes the folder where it is missing: for all users below a folder that all users may write,
/// else for this user alone. False where it cannot be made.
bool make_gpu_locks_folder(const std::filesystem::path& folder);

}  // namespace petlab::orchestrator
