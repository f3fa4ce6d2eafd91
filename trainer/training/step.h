#pragma once

#include <span>
#include <vector>

#include "trainer/training/optimizer.h"
#include "trainer/training/trial_model.h"
#include "trainer/training/trial_progress.h"

namespace petlab::trainer {

/// One optimizer step of the trials that are trained at once, all at the same step: each has its
/// own examples, dropout, loss, clipping and learning rates; the frozen backbone runs once for all.
/// Returns each one's mean loss; noting it (TrialProgress::finish_step) is the caller's. Throws
/// NotFinite where one of them is no number, before anything has moved.
std::vector<double> take_step(std::span<TrialProgress> trials, const std::vector<TaskRun>& tasks,
                              TrialModel& model, AdamW& optimizer);

}  // namespace petlab::trainer
