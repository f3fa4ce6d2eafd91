#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sweeps/trial_config.h"

namespace petlab::trainer {

/// The examples of one optimizer step, all of one task.
struct StepExamples {
  std::size_t task = 0;
  std::vector<std::int64_t> examples;  // of the task's training data
};

/// Which examples each step of a trial has (reference/method.md, "GLUE protocol"). It depends on
/// the seed, the sizes and the configuration alone, so that any step can be asked for.
class BatchOrder {
 public:
  /// `sizes`: training examples of each task, at least one each.
  BatchOrder(std::uint64_t seed, std::vector<std::int64_t> sizes,
             const sweeps::TrainingConfig& training);

  std::int64_t steps() const { return steps_; }
  std::int64_t steps_an_epoch() const { return steps_an_epoch_; }
  /// Steps from one validation to the next; there is another after the last step.
  std::int64_t steps_an_evaluation() const { return steps_an_evaluation_; }
  /// Validations that are due once so many steps are done.
  std::int64_t evaluations(std::int64_t steps_done) const;
  /// first_steps()[t]: the step whose batch is the first of task t, or the number of steps where
  /// there is none. Empty for one task.
  std::vector<std::int64_t> first_steps() const;
  /// `step` from 0.
  StepExamples at(std::int64_t step);

 private:
  struct Epoch {
    std::int64_t number = -1;
    std::vector<std::int64_t> examples;
  };
  const std::vector<std::int64_t>& order_of(std::size_t task, std::int64_t epoch);

  std::uint64_t seed_;
  std::vector<std::int64_t> sizes_;
  std::int64_t batch_size_;
  std::int64_t steps_an_epoch_ = 0;
  std::int64_t steps_ = 0;
  std::int64_t steps_an_evaluation_ = 0;
  std::vector<std::size_t> task_of_step_;   // (steps); empty for one task
  std::vector<std::int64_t> turn_of_step_;  // (steps); how many of its task came before
  std::vector<Epoch> epochs_;               // (tasks): that each is in
};

}  // namespace petlab::trainer
