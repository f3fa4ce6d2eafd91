#include "trainer/training/optimizer.h"

#include <cmath>
#include <map>
#include <utility>

#include "trainer/compute/tensors.h"

namespace petlab::trainer {

AdamW::AdamW(std::vector<Parameter> parameters, AdamWOptions options)
    : parameters_(std::move(parameters)), options_(options) {
  for (const Parameter& parameter : parameters_) {
    first_.push_back(at::zeros_like(parameter.value));
    second_.push_back(at::zeros_like(parameter.value));
  }
}

Tensor AdamW::clip(double max_norm) {
  const at::NoGradGuard no_grad;
  if (!on_cpu()) {
    const std::vector<Tensor> all = gradients();
    const Tensor norm = at::linalg_vector_norm(at::stack(at::_foreach_norm(all)).to(at::kDouble));
    if (max_norm <= 0) return norm;
    const Tensor factor = (max_norm / (norm + 1e-6)).clamp_max(1);
    at::_foreach_mul_(all, factor.to(all.front().scalar_type()));
    return norm;
  }
  Tensor sum = at::zeros({}, at::kDouble);
  for (const Parameter& parameter : parameters_) {
    const Tensor norm = at::linalg_vector_norm(parameter.gradient).to(at::kDouble);
    sum += norm * norm;
  }
  Tensor norm = sum.sqrt();
  if (max_norm <= 0) return norm;
  const Tensor factor = max_norm / (norm + 1e-6);
  // On a CPU, reading the factor is free, and multiplying by 1 is not.
  if (!(factor.item<double>() < 1)) return norm;
  for (const Parameter& parameter : parameters_) parameter.gradient.mul_(factor);
  return norm;
}

std::vector<Tensor> AdamW::gradients() const {
  std::vector<Tensor> all;
  for (const Parameter& parameter : parameters_) all.push_back(parameter.gradient);
  return all;
}

void AdamW::step(const Rates& rates) {
  const at::NoGradGuard no_grad;
  ++steps_;
  const std::vector<Moving> all = moving(rates);
  if (on_cpu()) {
    for (const Moving& one : all) update(one);
  } else {
    update_on_device(all);
  }
}

std::vector<AdamW::Moving> AdamW::moving(const Rates& rates) {
  std::vector<Moving> all;
  const auto add = [&](Moving one) {
    if (one.steps > 0) all.push_back(std::move(one));
  };
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const Parameter& parameter = parameters_[i];
    Moving whole{parameter.value.detach(), parameter.gradient, first_[i], second_[i]};
    whole.steps = steps_of(parameter.task);
    whole.rate = parameter.rate == Rate::scores ? rates.scores : rates.module;
    whole.decayed = parameter.decayed;
    if (!parameter.by_task) {
      add(std::move(whole));
      continue;
    }
    for (std::int64_t t = 0; t < whole.value.size(0); ++t) {
      Moving of_task = whole;
      for (Tensor* const tensor :
           {&of_task.value, &of_task.gradient, &of_task.first, &of_task.second}) {
        *tensor = tensor->select(0, t);
      }
      of_task.steps = steps_of(static_cast<std::size_t>(t));
      add(std::move(of_task));
    }
  }
  return all;
}

std::int64_t AdamW::steps_of(std::optional<std::size_t> task) const {
  return task && !first_step_.empty() ? steps_ - first_step_[*task] : steps_;
}

void AdamW::update(const Moving& one) const {
  const double correction1 = 1 - std::pow(options_.beta1, static_cast<double>(one.steps));
  const double correction2 = 1 - std::pow(options_.beta2, static_cast<double>(one.steps));
  const Tensor &value = one.value, &gradient = one.gradient, &first = one.first,
               &second = one.second;
  if (one.decayed) value.mul_(1 - one.rate * options_.weight_decay);
  first.lerp_(gradient, 1 - options_.beta1);
  second.mul_(options_.beta2).addcmul_(gradient, gradient, 1 - options_.beta2);
  const Tensor denominator = second.sqrt().div_(std::sqrt(correction2)).add_(options_.eps);
  value.addcdiv_(first, denominator, -one.rate / correction1);
}

void AdamW::update_on_device(std::span<const Moving> all) const {
  if (all.empty()) return;
  // Updates parameters with the same rate and decay together.
  std::map<std::pair<double, bool>, std::vector<std::size_t>> groups;
  std::vector<double> numbers;
  for (std::size_t i = 0; i < all.size(); ++i) {
    groups[{all[i].rate, all[i].decayed}].push_back(i);
    numbers.push_back(static_cast<double>(all[i].steps));
  }
  // LibTorch's CUDA kernel reads float32 steps for parameters of any type. Other kernels read steps
  // of the parameters' type.
  const at::Device device = all[0].value.device();
  const Tensor step_counts = on_device(
      at::tensor(numbers, device.is_cuda() ? at::kFloat : all[0].value.scalar_type()), device);
  for (const auto& [rate_and_decay, members] : groups) {
    std::vector<Tensor> values, gradients, firsts, seconds, steps;
    for (const std::size_t i : members) {
      values.push_back(all[i].value);
      gradients.push_back(all[i].gradient);
      firsts.push_back(all[i].first);
      seconds.push_back(all[i].second);
      steps.push_back(step_counts.select(0, static_cast<std::int64_t>(i)));
    }
    at::_fused_adamw_(values, gradients, firsts, seconds, {}, steps, rate_and_decay.first,
                      options_.beta1, options_.beta2,
                      rate_and_decay.second ? options_.weight_decay : 0.0, options_.eps,
                      /*amsgrad=*/false, /*maximize=*/false);
  }
}

void AdamW::zero_gradients() {
  if (on_cpu()) {
    for (const Parameter& parameter : parameters_) parameter.gradient.zero_();
    return;
  }
  at::_foreach_zero_(gradients());
}

std::vector<std::pair<std::string, Tensor>> AdamW::state() const {
  std::vector<std::pair<std::string, Tensor>> all;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    all.emplace_back(parameters_[i].name + ".exp_avg", first_[i]);
    all.emplace_back(parameters_[i].name + ".exp_avg_sq", second_[i]);
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
