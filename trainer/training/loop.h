#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "protocol/events.h"
#include "sweeps/task.h"
#include "sweeps/trial_config.h"
#include "trainer/data/batches.h"
#include "trainer/training/checkpoint.h"
#include "trainer/training/evaluation.h"
#include "trainer/training/optimizer.h"
#include "trainer/training/trial_model.h"

namespace petlab::trainer {

/// One task of a trial with its tokenised data.
struct TaskRun {
  sweeps::TaskDeclaration declaration;
  TokenisedSplit train;
  TokenisedSplit validation;
  TokenisedSplit test;
};

/// What a training run tells as it goes.
struct LoopObserver {
  /// After each optimizer step: steps done, steps in all, the step's mean loss.
  std::function<void(std::int64_t step, std::int64_t of, double loss)> on_step;
  std::function<void(const protocol::Metric& metric)> on_metric;
  /// When the state should be written: at the end of each epoch, and as the configuration says.
  std::function<void()> on_checkpoint;
};

/// The training of one trial (reference/method.md, "GLUE protocol"): epochs, validation after each,
/// selection of the best, test of that one. Its numbers depend on the configuration, the data and
/// the numerics alone; a run that is restored from a checkpoint goes on with the same numbers.
class TrainingLoop {
 public:
  /// `tasks` in the order of config.tasks, each with examples in all three parts, else Error.
  TrainingLoop(const sweeps::TrialConfig& config, std::vector<TaskRun> tasks,
               const Backbone& backbone, LoopObserver observer);

  std::int64_t steps() const { return steps_; }
  const TrialState& state() const { return state_; }
  /// Parameters, optimizer state and the best parameters so far, by name.
  NamedTensors tensors();
  /// Goes on from a checkpoint. Throws Error where a tensor is missing or misshapen.
  void restore(const TrialState& state, const NamedTensors& tensors);

  /// Trains to the end, selects the best and reports its test metrics. Throws Interrupted as soon
  /// as `stop` is set (then state and tensors can be written and resumed from), NotFinite.
  void run(const std::atomic<bool>& stop);
  /// The model; after run() with the selected parameters, merged.
  TrialModel& model() { return model_; }
  const std::vector<TaskRun>& tasks() const { return tasks_; }

 private:
  struct Batch {
    std::size_t task = 0;
    std::vector<std::int64_t> examples;
  };
  struct EpochOrder {
    std::int64_t epoch = -1;
    std::vector<std::int64_t> examples;
  };
  Batch batch_of(std::int64_t step);
  const std::vector<std::int64_t>& order_of(std::size_t task, std::int64_t epoch);
  double train_step();
  void validate(const std::atomic<bool>& stop);
  void report(const std::string& split, const std::string& task, std::int64_t step,
              const std::vector<std::pair<std::string, std::optional<double>>>& metrics);
  void keep_best();
  void restore_best();

  const sweeps::TrialConfig config_;
  std::vector<TaskRun> tasks_;
  LoopObserver observer_;
  TrialModel model_;
  AdamW optimizer_;
  std::vector<Tensor> best_;  // values of the optimizer's parameters at state_.best_step
  TrialState state_;
  std::int64_t steps_an_epoch_ = 0;
  std::int64_t steps_ = 0;
  std::vector<std::size_t> task_of_step_;   // (steps); empty for one task
  std::vector<std::int64_t> turn_of_step_;  // (steps); how many of its task came before
  std::vector<EpochOrder> orders_;          // (tasks): of the epoch that each is in
};

}  // namespace petlab::trainer
