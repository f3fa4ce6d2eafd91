#pragma once

#include <optional>
#include <string>

#include "sweeps/trial_config.h"

namespace petlab::trainer {

/// Explains why two trials cannot be trained together on one pass of the backbone: returns the
/// first field in which they must agree but do not, with both values. Returns std::nullopt if they
/// can.
///
/// Trials may differ in the seed, the learning rates of module and scores, warm-up, clipping and
/// the interval of checkpoints, since each keeps its own. All other fields decide what a pass
/// computes or how many passes there are. Trials of several tasks are trained alone, since each
/// draws the task of a step's batch.
std::optional<std::string> why_not_in_one_gang(const sweeps::TrialConfig& one,
                                               const sweeps::TrialConfig& other);

}  // namespace petlab::trainer
