#pragma once

#include <atomic>
#include <cstddef>
#include <vector>

#include "sweeps/trial_config.h"
#include "trainer/training/checkpoint.h"
#include "trainer/training/evaluation.h"
#include "trainer/training/optimizer.h"
#include "trainer/training/task_run.h"
#include "trainer/training/trial_model.h"
#include "trainer/training/trial_progress.h"

namespace petlab::trainer {

/// One of the trials that are trained together.
struct GangTrial {
  sweeps::TrialConfig config;
  LoopObserver observer;
};

/// Trains one trial, or several together (reference/method.md, "GLUE protocol"): epochs with a
/// validation after each, selection of the best, and its test. The numbers depend only on the
/// configuration, the data and the numerics; a run restored from a checkpoint continues with the
/// same numbers.
class TrainingLoop {
 public:
  /// `tasks` are in the order of config.tasks. Throws Error unless each has examples in all three
  /// splits.
  TrainingLoop(const sweeps::TrialConfig& config, SharedTasks tasks, const Pretrained& pretrained,
               LoopObserver observer);
  /// Throws std::invalid_argument for trials that why_not_in_one_gang rejects.
  TrainingLoop(std::vector<GangTrial> trials, SharedTasks tasks, const Pretrained& pretrained);

  std::int64_t steps() const { return trials_.front().order().steps(); }
  const TrainingState& state(std::size_t k = 0) const { return trials_[k].state(); }
  /// The parameters, optimizer state and best parameters so far of trial k, by name.
  NamedTensors tensors(std::size_t k = 0) const { return trials_[k].tensors(optimizer_); }
  /// Resumes trial k from a checkpoint; the checkpoints of all trials must be of the same step.
  /// Throws Error if a tensor is missing or has the wrong shape.
  void restore(const TrainingState& state, const NamedTensors& tensors, std::size_t k = 0);

  /// Trains to the end, selects the best parameters and reports their test metrics. Throws
  /// NotFinite, and Interrupted soon after `stop` is set; state and tensors can then be saved and
  /// resumed.
  void run(const std::atomic<bool>& stop);
  /// The model. After run() it has the selected parameters, merged.
  TrialModel& model() { return model_; }
  const std::vector<TaskRun>& tasks() const { return *tasks_; }

 private:
  /// Evaluates a split: the scores of each trial, by task. Throws Interrupted, NotFinite.
  std::vector<std::vector<Scores>> evaluate(const TokenisedSplit TaskRun::*split,
                                            const std::atomic<bool>& stop,
                                            std::vector<std::vector<ScoredLines>>* lines = nullptr);
  void validate(const std::atomic<bool>& stop);
  void train_step();
  /// Returns the losses of the steps since the last call, by step and trial. Waits for the device.
  std::vector<std::vector<double>> take_losses();
  /// Passes the losses of the last steps to each trial.
  void report_losses(const std::vector<std::vector<double>>& losses);
  static bool is_checkpoint_due(const TrialProgress& trial);
  void test(const std::atomic<bool>& stop);

  SharedTasks tasks_;
  std::vector<TrialProgress> trials_;
  TrialModel model_;
  AdamW optimizer_;
  std::vector<Tensor> unread_;  // (K) losses of each of the last steps, on the device
};

}  // namespace petlab::trainer
