#pragma once

#include <span>

#include "trainer/training/training_trial.h"

namespace petlab::trainer {

/// Takes one optimizer step of trials that are trained together (why_not_in_one_gang), all at the
/// same step. Each has its own examples, dropout, loss, clipping and learning rates; the frozen
/// backbone runs once for all. Returns the mean loss of each, (K) of kDouble on the backbone's
/// device; the caller reads and reports them. On the CPU, the parameters of a trial whose loss is
/// not finite stay as they are. The function does not wait for other devices.
Tensor take_step(std::span<TrainingTrial* const> trials);

}  // namespace petlab::trainer
