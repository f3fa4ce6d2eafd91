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

/// AdamW as in torch: decay first, eps outside the bias correction.
struct AdamWOptions {
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0.1;
};

/// Learning rates for one step: for modules and heads, and for mask scores.
struct Rates {
  double module = 0;
  double scores = 0;
};

/// AdamW with two learning rates. Its state is named for checkpoints.
///
/// A parameter of one task joins at the first batch of that task; before that, it neither decays
/// nor counts steps, as torch skips parameters without a gradient. From then on it moves in every
/// step, as in torch when gradients are set to zero between steps.
class AdamW {
 public:
  AdamW(std::vector<Parameter> parameters, AdamWOptions options);

  /// first_step[t] is the first step, from 0, with a batch of task t. Without this call, all are 0.
  void set_first_steps(std::vector<std::int64_t> first_step) {
    first_step_ = std::move(first_step);
  }

  /// Scales the gradients to a total norm of at most max_norm (torch's factor max_norm / (norm +
  /// 1e-6); 0: no clipping). Returns the norm before clipping, a scalar of kDouble on the
  /// parameters' device. Does not wait for devices other than the CPU.
  Tensor clip(double max_norm);
  void step(const Rates& rates);
  void zero_gradients();

  const std::vector<Parameter>& parameters() const { return parameters_; }
  std::int64_t steps() const { return steps_; }
  void set_steps(std::int64_t steps) { steps_ = steps; }
  /// Names ("down.weight.exp_avg", …) and tensors of the state, as checkpoints store them.
  std::vector<std::pair<std::string, Tensor>> state() const;

 private:
  /// A parameter, or a task's slice of it, with its moments and the settings of its update.
  struct Moving {
    Tensor value, gradient, first, second;
    std::int64_t steps = 0;  // steps that it took part in, this one included
    double rate = 0;
    bool decayed = true;
  };
  /// Steps that parameters of this task have taken part in. Absent: of all tasks.
  std::int64_t steps_of(std::optional<std::size_t> task) const;
  /// The slices that this step updates.
  std::vector<Moving> moving(const Rates& rates);
  void update(const Moving& one) const;
  /// Updates all slices in a few launches, with steps and rates in device memory.
  void update_on_device(std::span<const Moving> all) const;
  std::vector<Tensor> gradients() const;
  bool on_cpu() const { return parameters_.empty() || parameters_[0].value.device().is_cpu(); }

  std::vector<Parameter> parameters_;
  std::vector<Tensor> first_, second_;
  AdamWOptions options_;
  std::int64_t steps_ = 0;
  std::vector<std::int64_t> first_step_;
};

/// The number of warm-up steps out of `steps`: training.warmup_steps, or else ceil(warmup_ratio ·
/// steps).
std::int64_t warmup_of(const sweeps::TrainingConfig& training, std::int64_t steps);

/// The factor of the learning rate at step `step` (from 0) of `steps`: a linear rise over the first
/// `warmup` steps, then linear decay to 0.
double schedule_factor(std::int64_t step, std::int64_t steps, std::int64_t warmup);

}  // namespace petlab::trainer
