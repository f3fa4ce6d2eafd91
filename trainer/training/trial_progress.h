#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "protocol/events.h"
#include "sweeps/trial_config.h"
#include "trainer/training/batch_order.h"
#include "trainer/training/checkpoint.h"
#include "trainer/training/objective.h"
#include "trainer/training/optimizer.h"
#include "trainer/training/task_run.h"

namespace petlab::trainer {

/// Callbacks of a training run.
struct LoopObserver {
  /// Called after each optimizer step, with the steps done, the total and the step's mean loss.
  std::function<void(std::int64_t step, std::int64_t of, double loss)> on_step;
  std::function<void(const protocol::Metric& metric)> on_metric;
  /// Called when the state should be saved: after each validation, and as the configuration asks.
  std::function<void()> on_checkpoint;
  /// Called with the selected parameters' predictions for a task's test data.
  std::function<void(const std::string& task, const ScoredLines& lines)> on_predictions;
};

/// The progress of one trial: its state, its best parameters so far, the order of its examples and
/// its observer. The model owns the trained tensors; this is trial `k` of those trained together.
class TrialProgress {
 public:
  /// Throws Error if a split of a task is empty.
  TrialProgress(std::int64_t k, sweeps::TrialConfig config, const std::vector<TaskRun>& tasks,
                LoopObserver observer);

  const sweeps::TrialConfig& config() const { return config_; }
  const LoopObserver& observer() const { return observer_; }
  BatchOrder& order() { return order_; }
  const BatchOrder& order() const { return order_; }
  const TrainingState& state() const { return state_; }

  /// Whether a validation is due.
  bool is_to_be_validated() const;
  bool is_trained() const;
  /// Counts a finished step.
  void finish_step() { ++state_.step; }
  /// Adds the trial's share of the training time.
  void add_seconds(double seconds) { state_.train_seconds += seconds; }
  /// Records and reports the mean loss of a finished step. Call it once per step, in order.
  void note_loss(std::int64_t step, double loss);
  /// Records and reports a validation's loss and scores, by task. If it is the best so far, keeps
  /// the values of `parameters`.
  void finish_evaluation(const std::vector<TaskRun>& tasks, const std::vector<Scores>& scores,
                         const std::vector<Parameter>& parameters);
  /// Reports metrics.
  void report(const std::string& split, const std::string& task, std::int64_t step,
              const std::vector<std::pair<std::string, std::optional<double>>>& metrics) const;

  /// Copies this trial's slices of the parameters' values.
  std::vector<Tensor> copy_values(const std::vector<Parameter>& parameters) const;
  void write_values(const std::vector<Tensor>& values,
                    const std::vector<Parameter>& parameters) const;
  const std::vector<Tensor>& best() const { return best_; }

  /// The tensors that a checkpoint stores for this trial, by name: parameters, the best parameters
  /// so far, the optimizer's moments. They own their memory.
  NamedTensors tensors(const AdamW& optimizer) const;
  /// Restores state and tensors from a checkpoint. Throws Error if a tensor is missing or has the
  /// wrong shape.
  void restore(const TrainingState& state, const NamedTensors& from, const AdamW& optimizer);

 private:
  std::int64_t k_;
  sweeps::TrialConfig config_;
  LoopObserver observer_;
  BatchOrder order_;
  TrainingState state_;
  std::vector<Tensor> best_;  // the optimizer's parameters at state_.best_step
};

}  // namespace petlab::trainer
