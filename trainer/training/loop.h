#pragma once

#include <atomic>
#include <cstddef>
#include <exception>
#include <memory>
#include <vector>

#include "sweeps/trial_config.h"
#include "trainer/training/checkpoint.h"
#include "trainer/training/evaluation.h"
#include "trainer/training/task_run.h"
#include "trainer/training/training_trial.h"
#include "trainer/training/trial_model.h"

namespace petlab::trainer {

/// Trains one trial, or a gang of them on one pass of the frozen backbone (reference/method.md,
/// "GLUE protocol"): epochs with a validation after each, selection of the best, and its test. A
/// trial of a gang leaves it when it is trained, fails or is to stop; the others continue. The
/// numbers depend only on the configuration, the data and the numerics; a run restored from a
/// checkpoint continues with the same numbers.
class TrainingLoop {
 public:
  /// Throws as TrainingTrial.
  TrainingLoop(const sweeps::TrialConfig& config, SharedTasks tasks, const Pretrained& pretrained,
               LoopObserver observer);
  /// Throws std::invalid_argument for no trials, and for trials that why_not_in_one_gang rejects.
  explicit TrainingLoop(std::vector<std::unique_ptr<TrainingTrial>> trials);

  std::int64_t steps() const { return trials_.front()->order().steps(); }
  const TrainingState& state(std::size_t k = 0) const { return trials_[k]->state(); }
  /// The parameters, optimizer state and best parameters so far of trial k, by name.
  NamedTensors tensors(std::size_t k = 0) const { return trials_[k]->tensors(); }
  /// Resumes a trial from a checkpoint. Throws as TrainingTrial::restore.
  void restore(const TrainingState& state, const NamedTensors& tensors, std::size_t k = 0) {
    trials_[k]->restore(state, tensors);
  }

  /// Trains to the end, selects the best parameters and reports their test metrics. Throws
  /// Interrupted soon after `stop` is set; state and tensors can then be saved and resumed. Throws
  /// std::invalid_argument if trials resume from checkpoints of different steps, and NotFinite
  /// unless the trial's observer has on_end.
  void run(const std::atomic<bool>& stop);
  /// A trial's model. After run() it has the selected parameters, merged.
  TrialModel& model(std::size_t k = 0) { return trials_[k]->model(); }
  const std::vector<TaskRun>& tasks(std::size_t k = 0) const { return trials_[k]->tasks(); }

 private:
  /// Does trial k's `work`, unless it has left. A result that is not finite ends this trial.
  template <typename Work>
  void for_trial(std::size_t k, Work work);
  /// Lets the trials leave that are to stop.
  void stop_trials();
  /// Trial k leaves: trained and tested, failed, or stopped.
  void leave(std::size_t k, const std::exception_ptr& failure);
  void train_step();
  /// The losses of the steps since the last call, (steps, trials in training). Waits for the
  /// device.
  Tensor take_losses();
  /// Passes the losses of the last steps to each trial.
  void report_losses(const Tensor& losses);

  std::vector<std::unique_ptr<TrainingTrial>> trials_;
  std::vector<std::size_t> training_;  // the trials of the last step; some may have left since
  std::vector<bool> left_;             // by trial
  /// The losses of each of the last steps, on the device: one for each trial in training.
  std::vector<Tensor> unread_;
};

}  // namespace petlab::trainer
