#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sweeps/trial_config.h"

namespace petlab::trainer {

/// The examples of one optimizer step, all of one task.
struct StepExamples {
  std::size_t task = 0;
  std::vector<std::int64_t> examples;  // indices into the task's training data
};

/// Determines the examples of each step of a trial (reference/method.md, "GLUE protocol"). They
/// depend only on the seed, the sizes and the configuration, so steps can be queried in any order.
class BatchOrder {
 public:
  /// `sizes`: the number of training examples of each task, at least 1.
  BatchOrder(std::uint64_t seed, std::vector<std::int64_t> sizes,
             const sweeps::TrainingConfig& training);

  std::int64_t steps() const { return steps_; }
  std::int64_t steps_an_epoch() const { return steps_an_epoch_; }
  /// Steps between two validations. The last step is always followed by a validation.
  std::int64_t steps_an_evaluation() const { return steps_an_evaluation_; }
  /// The number of validations due after `steps_done` steps.
  std::int64_t evaluations(std::int64_t steps_done) const;
  /// first_steps()[t] is the first step with a batch of task t, or the number of steps if none has.
  /// Empty for a single task.
  std::vector<std::int64_t> first_steps() const;
  /// Steps count from 0.
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
  std::vector<std::size_t> task_of_step_;   // (steps); empty for a single task
  std::vector<std::int64_t> turn_of_step_;  // (steps); earlier batches of the same task
  std::vector<Epoch> epochs_;               // (tasks); each task's current epoch
};

}  // namespace petlab::trainer
