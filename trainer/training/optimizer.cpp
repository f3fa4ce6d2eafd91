#include "trainer/training/optimizer.h"

#include <cmath>

namespace petlab::trainer {

AdamW::AdamW(std::vector<Parameter> parameters, AdamWOptions options, std::int64_t trials)
    : parameters_(std::move(parameters)), options_(options), trials_(trials) {
  for (const Parameter& parameter : parameters_) {
    first_.push_back(at::zeros_like(parameter.value));
    second_.push_back(at::zeros_like(parameter.value));
  }
}

Tensor AdamW::clip(std::span<const double> max_norms) {
  const at::NoGradGuard no_grad;
  std::vector<Tensor> norms;
  for (std::int64_t k = 0; k < trials_; ++k) {
    Tensor sum;
    for (const Parameter& parameter : parameters_) {
      const Tensor norm = at::linalg_vector_norm(part(parameter.gradient, k)).to(at::kDouble);
      const Tensor square = norm * norm;
      sum = sum.defined() ? sum + square : square;
    }
    norms.push_back(sum.sqrt());
    const double max_norm = max_norms[static_cast<std::size_t>(k)];
    if (max_norm <= 0) continue;
    Tensor factor = max_norm / (norms.back() + 1e-6);
    if (factor.device().is_cpu()) {
      // To read it costs nothing there, and to multiply by 1 would.
      if (!(factor.item<double>() < 1)) continue;
    } else {
      factor = factor.clamp_max(1);
    }
    for (const Parameter& parameter : parameters_) part(parameter.gradient, k).mul_(factor);
  }
  return at::stack(norms);
}

void AdamW::step(std::span<const Rates> rates) {
  const at::NoGradGuard no_grad;
  ++steps_;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const Parameter& parameter = parameters_[i];
    for (std::int64_t k = 0; k < trials_; ++k) {
      const Rates& own = rates[static_cast<std::size_t>(k)];
      const double rate = parameter.rate == Rate::scores ? own.scores : own.module;
      const Moving all{part(parameter.value.detach(), k), part(parameter.gradient, k),
                       part(first_[i], k), part(second_[i], k)};
      if (!parameter.by_task) {
        update(steps_of(parameter.task), rate, parameter.decayed, all);
        continue;
      }
      const std::int64_t tasks = trials_ == 1 ? 1 : 0;  // their dimension
      for (std::int64_t t = 0; t < all.value.size(tasks); ++t) {
        update(steps_of(static_cast<std::size_t>(t)), rate, parameter.decayed,
               {all.value.select(tasks, t), all.gradient.select(tasks, t),
                all.first.select(tasks, t), all.second.select(tasks, t)});
      }
    }
  }
}

std::int64_t AdamW::steps_of(std::optional<std::size_t> task) const {
  return task && !first_step_.empty() ? steps_ - first_step_[*task] : steps_;
}

void AdamW::update(std::int64_t steps, double rate, bool decayed, const Moving& moving) const {
  if (steps <= 0) return;
  const double correction1 = 1 - std::pow(options_.beta1, static_cast<double>(steps));
  const double correction2 = 1 - std::pow(options_.beta2, static_cast<double>(steps));
  const auto& [value, gradient, first, second] = moving;
  if (decayed) value.mul_(1 - rate * options_.weight_decay);
  first.lerp_(gradient, 1 - options_.beta1);
  second.mul_(options_.beta2).addcmul_(gradient, gradient, 1 - options_.beta2);
  const Tensor denominator = second.sqrt().div_(std::sqrt(correction2)).add_(options_.eps);
  value.addcdiv_(first, denominator, -rate / correction1);
}

void AdamW::zero_gradients() {
  for (const Parameter& parameter : parameters_) parameter.gradient.zero_();
}

std::vector<std::pair<std::string, Tensor>> AdamW::state(std::int64_t k) const {
  std::vector<std::pair<std::string, Tensor>> all;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    all.emplace_back(parameters_[i].name + ".exp_avg", parameters_[i].of_trial(first_[i], k));
    all.emplace_back(parameters_[i].name + ".exp_avg_sq", parameters_[i].of_trial(second_[i], k));
  }
  return all;
}

std::int64_t warmup_of(const sweeps::TrainingConfig& training, std::int64_t steps) {
  if (training.warmup_steps > 0) return std::min(training.warmup_steps, steps);
  return static_cast<std::int64_t>(std::ceil(training.warmup_ratio * static_cast<double>(steps)));
}

double schedule_factor(std::int64_t step, std::int64_t steps, std::int64_t warmup) {
  if (step < warmup) return static_cast<double>(step) / static_cast<double>(warmup);
  return static_cast<double>(steps - step) /
         static_cast<double>(std::max<std::int64_t>(1, steps - warmup));
}

}  // namespace petlab::trainer
