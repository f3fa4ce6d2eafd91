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

/// A trial of those that are trained at once.
struct GangTrial {
  sweeps::TrialConfig config;
  LoopObserver observer;
};

/// The training of a trial, or of several at once (reference/method.md, "GLUE protocol"): epochs,
/// validation after each, selection of the best, test of that one. Its numbers depend on the
/// configuration, the data and the numerics alone; a run that is restored from a checkpoint goes on
/// with the same numbers.
class TrainingLoop {
 public:
  /// `tasks` in the order of config.tasks, each with examples in all three parts, else Error.
  TrainingLoop(const sweeps::TrialConfig& config, SharedTasks tasks, const Pretrained& pretrained,
               LoopObserver observer);
  /// Throws std::invalid_argument for trials that why_not_in_one_gang has something against.
  TrainingLoop(std::vector<GangTrial> trials, SharedTasks tasks, const Pretrained& pretrained);

  std::int64_t steps() const { return trials_.front().order().steps(); }
  const TrainingState& state(std::size_t k = 0) const { return trials_[k].state(); }
  /// Parameters, optimizer state and the best parameters so far of trial k, by name.
  NamedTensors tensors(std::size_t k = 0) const { return trials_[k].tensors(optimizer_); }
  /// Goes on from a checkpoint of trial k; those of all trials must be of one step. Throws Error
  /// where a tensor is missing or misshapen.
  void restore(const TrainingState& state, const NamedTensors& tensors, std::size_t k = 0);

  /// Trains to the end, selects the best and reports its test metrics. Throws Interrupted as soon
  /// as `stop` is set (then state and tensors can be written and resumed from), NotFinite.
  void run(const std::atomic<bool>& stop);
  /// The model; after run() with the selected parameters, merged.
  TrialModel& model() { return model_; }
  const std::vector<TaskRun>& tasks() const { return *tasks_; }

 private:
  /// Of each trial, by task. Throws Interrupted, NotFinite.
  std::vector<std::vector<Scores>> evaluate(const TokenisedSplit TaskRun::*split,
                                            const std::atomic<bool>& stop,
                                            std::vector<std::vector<ScoredLines>>* lines = nullptr);
  void validate(const std::atomic<bool>& stop);
  void train_step();
  /// The losses of the steps since they were last read, by step and trial: waits for the device.
  std::vector<std::vector<double>> take_losses();
  /// Notes the losses of the last steps in each trial.
  void tell(const std::vector<std::vector<double>>& losses);
  static bool is_checkpoint_due(const TrialProgress& trial);
  void test(const std::atomic<bool>& stop);

  SharedTasks tasks_;
  std::vector<TrialProgress> trials_;
  TrialModel model_;
  AdamW optimizer_;
  std::vector<Tensor> unread_;  // of the last steps: each its losses, (K), on the device
};

}  // namespace petlab::trainer
