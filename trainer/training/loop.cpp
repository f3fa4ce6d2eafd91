#include "trainer/training/loop.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "metrics/selection.h"
#include "trainer/compute/random_stream.h"
#include "trainer/files/error.h"

namespace petlab::trainer {
namespace {

/// A multi-task batch comes from one task, drawn with probability ∝ (N_task / N)^(1 / 10).
constexpr double kTaskTemperature = 0.1;

std::vector<std::size_t> draw_tasks(const std::vector<TaskRun>& tasks, std::uint64_t seed,
                                    std::int64_t steps) {
  std::vector<double> upper;
  double sum = 0;
  for (const TaskRun& task : tasks) {
    sum += std::pow(static_cast<double>(task.train.size()), kTaskTemperature);
    upper.push_back(sum);
  }
  std::vector<std::size_t> drawn;
  for (std::int64_t step = 0; step < steps; ++step) {
    StreamPlace place;
    place.seed = seed;
    place.purpose = Purpose::task_choice;
    place.step = static_cast<std::uint64_t>(step);
    const double at = RandomStream(place).uniform() * sum;
    const auto found = std::upper_bound(upper.begin(), upper.end() - 1, at);
    drawn.push_back(static_cast<std::size_t>(found - upper.begin()));
  }
  return drawn;
}

AdamWOptions optimizer_options(const sweeps::TrainingConfig& training) {
  AdamWOptions options;
  options.weight_decay = training.weight_decay;
  return options;
}

std::vector<sweeps::TaskDeclaration> declarations(const std::vector<TaskRun>& tasks) {
  std::vector<sweeps::TaskDeclaration> all;
  for (const TaskRun& task : tasks) all.push_back(task.declaration);
  return all;
}

}  // namespace

TrainingLoop::TrainingLoop(const sweeps::TrialConfig& config, std::vector<TaskRun> tasks,
                           const Backbone& backbone, LoopObserver observer)
    : config_(config),
      tasks_(std::move(tasks)),
      observer_(std::move(observer)),
      model_(config_, declarations(tasks_), backbone),
      optimizer_(model_.parameters(), optimizer_options(config_.training)),
      orders_(tasks_.size()) {
  std::int64_t examples = 0;
  for (const TaskRun& task : tasks_) {
    for (const auto& [split, name] :
         {std::pair{&task.train, "training"}, std::pair{&task.validation, "validation"},
          std::pair{&task.test, "test"}}) {
      if (split->size() == 0) {
        throw Error("task " + task.declaration.name + ": no " + name +
                    " examples are left, must be at least one");
      }
    }
    examples += task.train.size();
  }
  const std::int64_t batch = config_.training.batch_size;
  steps_an_epoch_ = (examples + batch - 1) / batch;
  steps_ = steps_an_epoch_ * config_.training.epochs;
  if (tasks_.size() > 1) {
    task_of_step_ = draw_tasks(tasks_, config_.seed.value, steps_);
    std::vector<std::int64_t> first_step;
    for (std::size_t t = 0; t < tasks_.size(); ++t) {
      const auto first = std::find(task_of_step_.begin(), task_of_step_.end(), t);
      first_step.push_back(first - task_of_step_.begin());
    }
    optimizer_.set_first_steps(std::move(first_step));
  }
}

const std::vector<std::int64_t>& TrainingLoop::order_of(std::size_t task, std::int64_t epoch) {
  EpochOrder& kept = orders_[task];
  if (kept.epoch != epoch) {
    kept.epoch = epoch;
    kept.examples = epoch_order(config_.seed.value, task, static_cast<std::uint64_t>(epoch),
                                tasks_[task].train.size());
  }
  return kept.examples;
}

TrainingLoop::Batch TrainingLoop::batch_of(std::int64_t step) {
  Batch batch;
  const std::int64_t size = config_.training.batch_size;
  if (task_of_step_.empty()) {
    // An epoch's last batch is smaller where the number of examples asks for it.
    const std::vector<std::int64_t>& order = order_of(0, step / steps_an_epoch_);
    const std::int64_t from = step % steps_an_epoch_ * size;
    const std::int64_t to = std::min(static_cast<std::int64_t>(order.size()), from + size);
    batch.examples.assign(order.begin() + from, order.begin() + to);
    return batch;
  }
  // With several tasks, the epochs of each follow one another without a seam.
  if (turn_of_step_.empty()) {
    std::vector<std::int64_t> turns(tasks_.size());
    for (const std::size_t task : task_of_step_) turn_of_step_.push_back(turns[task]++);
  }
  batch.task = task_of_step_[static_cast<std::size_t>(step)];
  const std::int64_t from = turn_of_step_[static_cast<std::size_t>(step)] * size;
  const std::int64_t n = tasks_[batch.task].train.size();
  for (std::int64_t i = from; i < from + size; ++i) {
    batch.examples.push_back(order_of(batch.task, i / n)[static_cast<std::size_t>(i % n)]);
  }
  return batch;
}

double TrainingLoop::train_step() {
  Batch batch = batch_of(state_.step);
  const TokenisedSplit& train = tasks_[batch.task].train;
  const sweeps::TrainingConfig& training = config_.training;
  Dropout dropout;
  const DropoutRates own = model_.backbone().dropout_rates();
  dropout.hidden = training.dropout < 0 ? own.hidden : training.dropout;
  dropout.attention = training.dropout < 0 ? own.attention : training.dropout;
  dropout.step = static_cast<std::uint64_t>(state_.step);
  dropout.seeds = {config_.seed.value};

  optimizer_.zero_gradients();
  model_.merge(batch.task);
  const auto size = static_cast<std::int64_t>(batch.examples.size());
  const std::int64_t parts = std::min(size, training.gradient_accumulation);
  double loss = 0;
  for (std::int64_t part = 0; part < parts; ++part) {
    std::vector<std::int64_t> examples(batch.examples.begin() + part * size / parts,
                                       batch.examples.begin() + (part + 1) * size / parts);
    sort_by_length(train, examples);
    const PackedBatch packed = pack(train, examples);
    const Tensor mean =
        model_.objective(batch.task).losses(model_.pass(&dropout), packed).front() / size;
    mean.backward();
    loss += mean.item<double>();
  }
  if (!std::isfinite(loss)) {
    throw NotFinite("the loss is not finite at step " + std::to_string(state_.step + 1) +
                    ": a smaller training.learning_rate or training.max_grad_norm may help");
  }
  model_.gather(batch.task);
  optimizer_.clip(training.max_grad_norm);
  const double factor = schedule_factor(state_.step, steps_, training.warmup_ratio);
  optimizer_.step(training.learning_rate * factor, training.mask_learning_rate * factor);
  ++state_.step;
  state_.epoch_loss += loss;
  return loss;
}

void TrainingLoop::report(
    const std::string& split, const std::string& task, std::int64_t step,
    const std::vector<std::pair<std::string, std::optional<double>>>& metrics) {
  if (!observer_.on_metric) return;
  for (const auto& [name, value] : metrics) observer_.on_metric({step, split, task, name, value});
}

void TrainingLoop::validate(const std::atomic<bool>& stop) {
  std::vector<Scores> all;
  for (std::size_t t = 0; t < tasks_.size(); ++t) {
    model_.merge(t);
    const TokenisedSplit& split = tasks_[t].validation;
    all.push_back(model_.objective(t).score(split, predict(model_, t, split, stop)));
  }
  const std::string whole = tasks_.size() == 1 ? tasks_.front().declaration.name : "all";
  report("train", whole, state_.step,
         {{"loss", state_.epoch_loss / static_cast<double>(steps_an_epoch_)}});
  std::vector<metrics::SelectedMetric> selected;
  for (std::size_t t = 0; t < tasks_.size(); ++t) {
    report("validation", tasks_[t].declaration.name, state_.step, all[t].metrics);
    selected.insert(selected.end(), all[t].selected.begin(), all[t].selected.end());
  }
  const std::optional<double> value = metrics::selection_score(selected);
  if (!state_.best_step || metrics::is_better_selection(value, state_.best_value)) {
    state_.best_step = state_.step;
    state_.best_value = value;
    keep_best();
  }
  state_.epoch_loss = 0;
  ++state_.evaluated_epochs;
}

void TrainingLoop::keep_best() {
  best_.clear();
  for (const Parameter& parameter : optimizer_.parameters()) {
    best_.push_back(parameter.value.clone());
  }
}

void TrainingLoop::restore_best() {
  for (std::size_t i = 0; i < best_.size(); ++i) {
    optimizer_.parameters()[i].value.copy_(best_[i]);
  }
}

NamedTensors TrainingLoop::tensors() {
  NamedTensors all;
  for (std::size_t i = 0; i < optimizer_.parameters().size(); ++i) {
    const Parameter& parameter = optimizer_.parameters()[i];
    all.emplace(parameter.name, parameter.of_trial(parameter.value, 0));
    if (!best_.empty()) all.emplace("best." + parameter.name, parameter.of_trial(best_[i], 0));
  }
  for (const auto& [name, tensor] : optimizer_.state()) all.emplace("optimizer." + name, tensor);
  return all;
}

void TrainingLoop::restore(const TrialState& state, const NamedTensors& from) {
  state_ = state;
  optimizer_.set_steps(state.step);
  if (state.best_step) keep_best();
  for (const auto& [name, tensor] : tensors()) {
    const auto found = from.find(name);
    if (found == from.end() || found->second.sizes() != tensor.sizes() ||
        found->second.scalar_type() != tensor.scalar_type()) {
      throw Error("the checkpoint's tensor " + name + " is missing or has another shape than " +
                  c10::str(tensor.sizes()));
    }
    tensor.copy_(found->second);
  }
}

void TrainingLoop::run(const std::atomic<bool>& stop) {
  using clock = std::chrono::steady_clock;
  while (state_.step < steps_ || state_.evaluated_epochs < config_.training.epochs) {
    if (stop) throw Interrupted();
    if (state_.step > 0 && state_.step % steps_an_epoch_ == 0 &&
        state_.evaluated_epochs < state_.step / steps_an_epoch_) {
      validate(stop);
      if (observer_.on_checkpoint) observer_.on_checkpoint();
      continue;
    }
    const auto began = clock::now();
    const double loss = train_step();
    state_.train_seconds += std::chrono::duration<double>(clock::now() - began).count();
    if (observer_.on_step) observer_.on_step(state_.step, steps_, loss);
    const std::int64_t every = config_.training.checkpoint_every;
    if (every > 0 && state_.step % every == 0 && state_.step % steps_an_epoch_ != 0 &&
        observer_.on_checkpoint) {
      observer_.on_checkpoint();
    }
  }
  // The state stays what a checkpoint would hold until nothing can interrupt any more.
  std::vector<Tensor> last;
  for (const Parameter& parameter : optimizer_.parameters())
    last.push_back(parameter.value.clone());
  restore_best();
  std::vector<Scores> all;
  try {
    for (std::size_t t = 0; t < tasks_.size(); ++t) {
      model_.merge(t);
      const TokenisedSplit& test = tasks_[t].test;
      all.push_back(model_.objective(t).score(test, predict(model_, t, test, stop)));
    }
  } catch (const Interrupted&) {
    for (std::size_t i = 0; i < last.size(); ++i) {
      optimizer_.parameters()[i].value.copy_(last[i]);
    }
    throw;
  }
  for (std::size_t t = 0; t < tasks_.size(); ++t) {
    report("test", tasks_[t].declaration.name, *state_.best_step, all[t].metrics);
  }
}

}  // namespace petlab::trainer
