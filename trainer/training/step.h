#pragma once

#include <span>
#include <vector>

#include "trainer/training/optimizer.h"
#include "trainer/training/trial_model.h"
#include "trainer/training/trial_progress.h"

namespace petlab::trainer {

/// Takes one optimizer step of the trials that are trained together, all at the same step. Each has
/// its own examples, dropout, loss, clipping and learning rates; the frozen backbone runs once for
/// all. Returns the mean loss of each, (K) of kDouble on the backbone's device; the caller reads
/// and reports them. On the CPU, throws NotFinite before any parameter changes if a loss is not
/// finite. It does not wait for other devices; there, read_losses throws.
Tensor take_step(std::span<TrialProgress> trials, const std::vector<TaskRun>& tasks,
                 TrialModel& model, AdamW& optimizer);

/// Reads the losses of a step, numbered from 1. Waits for the device. Throws NotFinite.
std::vector<double> read_losses(std::span<const TrialProgress> trials, const Tensor& losses,
                                std::int64_t step);

}  // namespace petlab::trainer
