#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "protocol/events.h"
#include "sweeps/trial_config.h"
#include "trainer/training/batch_order.h"
#include "trainer/training/checkpoint.h"
#include "trainer/training/optimizer.h"
#include "trainer/training/task_run.h"
#include "trainer/training/trial_model.h"

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
  /// Asked before each step: whether the trial is to leave the loop. Needs on_end.
  std::function<bool()> is_to_stop;
  /// Called when the trial leaves the loop: trained and tested (nullptr), failed with NotFinite, or
  /// stopped (Interrupted).
  std::function<void(const std::exception_ptr& failure)> on_end;
};

/// A trial in training: its model and optimizer, its state, the order of its examples, its best
/// parameters so far and its observer.
class TrainingTrial {
 public:
  /// `tasks` are in the order of config.tasks. Throws Error unless each has examples in all three
  /// splits.
  TrainingTrial(sweeps::TrialConfig config, SharedTasks tasks, const Pretrained& pretrained,
                LoopObserver observer);

  const sweeps::TrialConfig& config() const { return config_; }
  const LoopObserver& observer() const { return observer_; }
  const std::vector<TaskRun>& tasks() const { return *tasks_; }
  BatchOrder& order() { return order_; }
  const BatchOrder& order() const { return order_; }
  const TrainingState& state() const { return state_; }
  TrialModel& model() { return model_; }
  const TrialModel& model() const { return model_; }

  /// Whether a validation is due.
  bool is_to_be_validated() const;
  /// Whether a checkpoint is due between two validations.
  bool is_checkpoint_due() const;
  bool is_trained() const;

  /// Clears the gradients, before the first backward pass of a step.
  void zero_gradients() { optimizer_.zero_gradients(); }
  /// Moves the parameters by their gathered gradients, with the rates of the step.
  void move_parameters();
  /// Counts a finished step.
  void finish_step() { ++state_.step; }
  /// Adds the trial's share of the training time.
  void add_seconds(double seconds) { state_.train_seconds += seconds; }
  /// Records and reports the mean loss of a finished step. Call it once per step, in order. Throws
  /// NotFinite.
  void note_loss(std::int64_t step, double loss);
  /// Validates: records and reports the loss since the last validation and the scores, and keeps
  /// the parameters if they are the best so far. Throws Interrupted, NotFinite.
  void validate(const std::atomic<bool>& stop);
  /// Selects the best parameters and reports their test metrics and predictions. Throws
  /// Interrupted, with the last parameters in place, and NotFinite.
  void test(const std::atomic<bool>& stop);

  /// The tensors that a checkpoint stores, by name: parameters, the best parameters so far, the
  /// optimizer's moments. They share this trial's memory.
  NamedTensors tensors() const;
  /// Restores state and tensors from a checkpoint. Throws Error if a tensor is missing or has the
  /// wrong shape.
  void restore(const TrainingState& state, const NamedTensors& from);

 private:
  /// Evaluates a split: the scores of each task. Throws Interrupted, NotFinite.
  std::vector<Scores> evaluate(const TokenisedSplit TaskRun::*split, const std::atomic<bool>& stop,
                               std::vector<ScoredLines>* lines = nullptr);
  void report(const std::string& split, const std::string& task, std::int64_t step,
              const std::vector<std::pair<std::string, std::optional<double>>>& metrics) const;
  std::vector<Tensor> copy_values() const;
  void write_values(const std::vector<Tensor>& values) const;

  sweeps::TrialConfig config_;
  SharedTasks tasks_;
  LoopObserver observer_;
  BatchOrder order_;
  TrainingState state_;
  TrialModel model_;
  AdamW optimizer_;
  std::vector<Tensor> best_;  // the optimizer's parameters at state_.best_step
};

}  // namespace petlab::trainer
