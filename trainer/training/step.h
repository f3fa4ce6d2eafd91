#pragma once

#include <span>
#include <vector>

#include "trainer/training/optimizer.h"
#include "trainer/training/trial_model.h"
#include "trainer/training/trial_progress.h"

namespace petlab::trainer {

/// One optimizer step of the trials that are trained at once, all at the same step: each has its
/// own examples, dropout, loss, clipping and learning rates; the frozen backbone runs once for all.
/// Returns each one's mean loss, (K) of kDouble where the backbone computes; reading and noting
/// them is the caller's. Throws NotFinite where one of them is no number, before anything has
/// moved, on the CPU; another device is not waited for, and read_losses finds it.
Tensor take_step(std::span<TrialProgress> trials, const std::vector<TaskRun>& tasks,
                 TrialModel& model, AdamW& optimizer);

/// The losses of a step, numbered from 1, as numbers: waits for the device. Throws NotFinite.
std::vector<double> read_losses(std::span<const TrialProgress> trials, const Tensor& losses,
                                std::int64_t step);

}  // namespace petlab::trainer
