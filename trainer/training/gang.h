#pragma once

#include <optional>
#include <string>

#include "sweeps/trial_config.h"

namespace petlab::trainer {

/// Why two trials cannot be trained at once, on one pass of the backbone: the first field in which
/// they must agree and do not, with both values. std::nullopt where they can.
///
/// They may differ in the seed, in the learning rates of module and scores, in warm-up, clipping
/// and in how often a checkpoint is written: each has its own of these. Everything else decides
/// what a pass computes, or how many there are. Trials of several tasks are each on their own,
/// since each draws whose batch a step has.
std::optional<std::string> why_not_in_one_gang(const sweeps::TrialConfig& one,
                                               const sweeps::TrialConfig& other);

}  // namespace petlab::trainer
