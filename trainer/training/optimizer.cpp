#include "trainer/training/optimizer.h"

#include <cmath>

namespace petlab::trainer {

AdamW::AdamW(std::vector<Parameter> parameters, AdamWOptions options)
    : parameters_(std::move(parameters)), options_(options) {
  for (const Parameter& parameter : parameters_) {
    first_.push_back(at::zeros_like(parameter.value));
    second_.push_back(at::zeros_like(parameter.value));
  }
}

double AdamW::clip(double max_norm) {
  double sum = 0;
  for (const Parameter& parameter : parameters_) {
    const double norm = at::linalg_vector_norm(parameter.gradient).item<double>();
    sum += norm * norm;
  }
  const double norm = std::sqrt(sum);
  const double factor = max_norm / (norm + 1e-6);
  if (max_norm > 0 && factor < 1) {
    for (const Parameter& parameter : parameters_) parameter.gradient.mul_(factor);
  }
  return norm;
}

void AdamW::step(double learning_rate, double scores_learning_rate) {
  const at::NoGradGuard no_grad;
  ++steps_;
  const double correction1 = 1 - std::pow(options_.beta1, static_cast<double>(steps_));
  const double correction2 = 1 - std::pow(options_.beta2, static_cast<double>(steps_));
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const Parameter& parameter = parameters_[i];
    const double rate = parameter.rate == Rate::scores ? scores_learning_rate : learning_rate;
    const Tensor value = parameter.value.detach();
    if (parameter.decayed) value.mul_(1 - rate * options_.weight_decay);
    first_[i].lerp_(parameter.gradient, 1 - options_.beta1);
    second_[i]
        .mul_(options_.beta2)
        .addcmul_(parameter.gradient, parameter.gradient, 1 - options_.beta2);
    const Tensor denominator = second_[i].sqrt().div_(std::sqrt(correction2)).add_(options_.eps);
    value.addcdiv_(first_[i], denominator, -rate / correction1);
  }
}

void AdamW::zero_gradients() {
  for (const Parameter& parameter : parameters_) parameter.gradient.zero_();
}

std::vector<std::pair<std::string, Tensor>> AdamW::state() const {
  std::vector<std::pair<std::string, Tensor>> all;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    all.emplace_back(parameters_[i].name + ".exp_avg", first_[i]);
    all.emplace_back(parameters_[i].name + ".exp_avg_sq", second_[i]);
  }
  return all;
}

double schedule_factor(std::int64_t step, std::int64_t steps, double warmup_ratio) {
  const auto warmup =
      static_cast<std::int64_t>(std::ceil(warmup_ratio * static_cast<double>(steps)));
  if (step < warmup) return static_cast<double>(step) / static_cast<double>(warmup);
  return static_cast<double>(steps - step) /
         static_cast<double>(std::max<std::int64_t>(1, steps - warmup));
}

}  // namespace petlab::trainer
