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

/// What a training run tells as it goes.
struct LoopObserver {
  /// After each optimizer step: steps done, steps in all, the step's mean loss.
  std::function<void(std::int64_t step, std::int64_t of, double loss)> on_step;
  std::function<void(const protocol::Metric& metric)> on_metric;
  /// When the state should be written: after each validation, and as the configuration says.
  std::function<void()> on_checkpoint;
  /// What was predicted of a task's test data by the parameters that were selected.
  std::function<void(const std::string& task, const ScoredLines& lines)> on_predictions;
};

/// One trial's way through its training: where it stands, its best so far, the order of its
/// examples and who hears of it. The trained tensors are the model's; this is trial number `k` of
/// those that are trained at once.
class TrialProgress {
 public:
  /// Throws Error where a task has no examples in one of its three parts.
  TrialProgress(std::int64_t k, sweeps::TrialConfig config, const std::vector<TaskRun>& tasks,
                LoopObserver observer);

  const sweeps::TrialConfig& config() const { return config_; }
  const LoopObserver& observer() const { return observer_; }
  BatchOrder& order() { return order_; }
  const BatchOrder& order() const { return order_; }
  const TrainingState& state() const { return state_; }

  /// Whether the next thing to do is to validate.
  bool is_to_be_validated() const;
  bool is_trained() const;
  /// Counts a step.
  void finish_step() { ++state_.step; }
  /// Adds the trial's share of the time that steps took.
  void add_seconds(double seconds) { state_.train_seconds += seconds; }
  /// Notes the mean loss of a finished step, each once and in their order, and tells of it.
  void note_loss(std::int64_t step, double loss);
  /// Notes a validation's scores, by task; keeps the values of `parameters` where it is the
  /// best so far. Tells of loss and metrics.
  void finish_evaluation(const std::vector<TaskRun>& tasks, const std::vector<Scores>& scores,
                         const std::vector<Parameter>& parameters);
  /// Tells of metrics.
  void report(const std::string& split, const std::string& task, std::int64_t step,
              const std::vector<std::pair<std::string, std::optional<double>>>& metrics) const;

  /// The trial's parts of the parameters' values, copied.
  std::vector<Tensor> copy_values(const std::vector<Parameter>& parameters) const;
  void write_values(const std::vector<Tensor>& values,
                    const std::vector<Parameter>& parameters) const;
  const std::vector<Tensor>& best() const { return best_; }

  /// What a checkpoint holds of this trial, by name: parameters, the best so far, the optimizer's
  /// moments. The memory is the trial's own.
  NamedTensors tensors(const AdamW& optimizer) const;
  /// Takes state and tensors from a checkpoint. Throws Error where a tensor is missing or
  /// misshapen.
  void restore(const TrainingState& state, const NamedTensors& from, const AdamW& optimizer);

 private:
  std::int64_t k_;
  sweeps::TrialConfig config_;
  LoopObserver observer_;
  BatchOrder order_;
  TrainingState state_;
  std::vector<Tensor> best_;  // of the optimizer's parameters at state_.best_step
};

}  // namespace petlab::trainer
