#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "sweeps/trial_config.h"
#include "trainer/modules/masked_weight.h"

namespace petlab::trainer {

/// AdamW in torch's form: decay first, eps outside the bias correction.
struct AdamWOptions {
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0.1;
};

/// Learning rates of one trial's step: of modules (and heads), and of scores.
struct Rates {
  double module = 0;
  double scores = 0;
};

/// AdamW over parameters with two learning rates, of one trial or of several whose parts are
/// dimension 0 of each parameter. Its state is named for checkpoints.
///
/// A parameter of one task takes part from the first batch of that task on, as in torch, where a
/// parameter without a gradient is passed over: until then it neither decays nor counts steps. From
/// then on it moves in every step, as in torch where gradients are set to zero between steps.
class AdamW {
 public:
  AdamW(std::vector<Parameter> parameters, AdamWOptions options, std::int64_t trials = 1);

  /// first_step[t]: the step, from 0, whose batch is the first of task t. Not called: all are 0.
  void set_first_steps(std::vector<std::int64_t> first_step) {
    first_step_ = std::move(first_step);
  }

  /// Scales each trial's gradients so that the norm of all of them together is at most its
  /// max_norms[k] (torch's factor max_norm / (norm + 1e-6); 0: not at all); returns the norms
  /// before, (K) of kDouble where the parameters are. A device other than the CPU is not waited
  /// for.
  Tensor clip(std::span<const double> max_norms);
  /// One step, each trial with its rates.
  void step(std::span<const Rates> rates);
  /// The same of one trial.
  double clip(double max_norm) { return clip(std::span(&max_norm, 1)).item<double>(); }
  void step(double learning_rate, double scores_learning_rate) {
    const Rates rates{learning_rate, scores_learning_rate};
    step(std::span(&rates, 1));
  }
  void zero_gradients();

  const std::vector<Parameter>& parameters() const { return parameters_; }
  std::int64_t steps() const { return steps_; }
  void set_steps(std::int64_t steps) { steps_ = steps; }
  /// Names ("down.weight.exp_avg", …) and tensors of trial k's state: what a checkpoint holds.
  std::vector<std::pair<std::string, Tensor>> state(std::int64_t k) const;

 private:
  /// A parameter, or a trial's or task's slice of one, with its moments, and what moves it.
  struct Moving {
    Tensor value, gradient, first, second;
    std::int64_t steps = 0;  // that it has taken part in, with this one
    double rate = 0;
    bool decayed = true;
  };
  /// Trial k's part of a parameter or of what belongs to one.
  Tensor part(const Tensor& all, std::int64_t k) const {
    return trials_ == 1 ? all : all.select(0, k);
  }
  /// Steps that a parameter of this task has taken part in; absent: of all tasks.
  std::int64_t steps_of(std::optional<std::size_t> task) const;
  /// All that this step moves.
  std::vector<Moving> moving(std::span<const Rates> rates);
  void update(const Moving& one) const;
  /// The same of all, in a few launches, with steps and rates read where the device has them.
  void update_on_device(std::span<const Moving> all) const;
  /// Trial k's gradients.
  std::vector<Tensor> gradients(std::int64_t k) const;
  bool on_cpu() const { return parameters_.empty() || parameters_[0].value.device().is_cpu(); }

  std::vector<Parameter> parameters_;
  std::vector<Tensor> first_, second_;
  AdamWOptions options_;
  std::int64_t trials_;
  std::int64_t steps_ = 0;
  std::vector<std::int64_t> first_step_;
};

/// Steps of the warm-up of so many: training.warmup_steps, or else ceil(warmup_ratio · steps).
std::int64_t warmup_of(const sweeps::TrainingConfig& training, std::int64_t steps);

/// The factor of the learning rate at optimizer step `step` (from 0) of `steps`: linear over the
/// first `warmup`, then linear decay to 0.
double schedule_factor(std::int64_t step, std::int64_t steps, std::int64_t warmup);

}  // namespace petlab::trainer
