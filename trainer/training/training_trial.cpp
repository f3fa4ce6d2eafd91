#include "trainer/training/training_trial.h"

#include <cmath>

#include "metrics/selection.h"
#include "trainer/files/error.h"
#include "trainer/training/evaluation.h"

namespace petlab::trainer {
namespace {

/// The number of training examples of each task. Throws Error if a split of a task is empty.
std::vector<std::int64_t> train_sizes(const std::vector<TaskRun>& tasks) {
  std::vector<std::int64_t> sizes;
  for (const TaskRun& task : tasks) {
    for (const auto& [split, name] :
         {std::pair{&task.train, "training"}, std::pair{&task.validation, "validation"},
          std::pair{&task.test, "test"}}) {
      if (split->size() == 0) {
        throw Error("task " + task.declaration.name + ": no " + name +
                    " examples are left, expected at least one");
      }
    }
    sizes.push_back(task.train.size());
  }
  return sizes;
}

std::vector<sweeps::TaskDeclaration> declarations(const std::vector<TaskRun>& tasks) {
  std::vector<sweeps::TaskDeclaration> all;
  for (const TaskRun& task : tasks) all.push_back(task.declaration);
  return all;
}

AdamWOptions optimizer_options(const sweeps::TrainingConfig& training) {
  AdamWOptions options;
  options.weight_decay = training.weight_decay;
  return options;
}

}  // namespace

TrainingTrial::TrainingTrial(sweeps::TrialConfig config, SharedTasks tasks,
                             const Pretrained& pretrained, LoopObserver observer)
    : config_(std::move(config)),
      tasks_(std::move(tasks)),
      observer_(std::move(observer)),
      order_(config_.seed.value, train_sizes(*tasks_), config_.training),
      model_(config_, declarations(*tasks_), pretrained),
      optimizer_(model_.parameters(), optimizer_options(config_.training)) {
  optimizer_.set_first_steps(order_.first_steps());
}

bool TrainingTrial::is_to_be_validated() const {
  return state_.evaluations < order_.evaluations(state_.step);
}

bool TrainingTrial::is_trained() const {
  return state_.step >= order_.steps() && !is_to_be_validated();
}

bool TrainingTrial::is_checkpoint_due() const {
  const std::int64_t every = config_.training.checkpoint_every;
  return every > 0 && state_.step % every == 0 && !is_to_be_validated() &&
         observer_.on_checkpoint != nullptr;
}

void TrainingTrial::move_parameters() {
  const sweeps::TrainingConfig& training = config_.training;
  const std::int64_t steps = order_.steps();
  const double factor = schedule_factor(state_.step, steps, warmup_of(training, steps));
  optimizer_.clip(training.max_grad_norm);
  optimizer_.step({training.learning_rate * factor, training.mask_learning_rate * factor});
}

void TrainingTrial::note_loss(std::int64_t step, double loss) {
  if (!std::isfinite(loss)) {
    throw NotFinite("the loss is not finite at step " + std::to_string(step) +
                    ": a smaller training.learning_rate or training.max_grad_norm may help");
  }
  state_.loss_sum += loss;
  if (observer_.on_step) observer_.on_step(step, order_.steps(), loss);
}

std::vector<Scores> TrainingTrial::evaluate(const TokenisedSplit TaskRun::*split,
                                            const std::atomic<bool>& stop,
                                            std::vector<ScoredLines>* lines) {
  std::vector<Scores> scores;
  for (std::size_t t = 0; t < tasks_->size(); ++t) {
    model_.merge(t);
    const TokenisedSplit& examples = (*tasks_)[t].*split;
    const Predictions predictions = predict(model_, t, examples, stop);
    scores.push_back(model_.objective(t).score(examples, predictions));
    if (lines != nullptr) lines->push_back(model_.objective(t).lines(examples, predictions));
  }
  return scores;
}

void TrainingTrial::validate(const std::atomic<bool>& stop) {
  const std::vector<Scores> scores = evaluate(&TaskRun::validation, stop);
  const std::int64_t steps = state_.step - state_.evaluations * order_.steps_an_evaluation();
  const std::string whole = tasks_->size() == 1 ? tasks_->front().declaration.name : "all";
  report("train", whole, state_.step, {{"loss", state_.loss_sum / static_cast<double>(steps)}});
  std::vector<metrics::SelectedMetric> selected;
  for (std::size_t t = 0; t < tasks_->size(); ++t) {
    report("validation", (*tasks_)[t].declaration.name, state_.step, scores[t].metrics);
    selected.insert(selected.end(), scores[t].selected.begin(), scores[t].selected.end());
  }
  const std::optional<double> value = metrics::selection_score(selected);
  if (!state_.best_step || metrics::is_better_selection(value, state_.best_value)) {
    state_.best_step = state_.step;
    state_.best_value = value;
    best_ = copy_values();
  }
  state_.loss_sum = 0;
  ++state_.evaluations;
  if (observer_.on_checkpoint) observer_.on_checkpoint();
}

void TrainingTrial::test(const std::atomic<bool>& stop) {
  // Keeps the last values: if this is interrupted, a checkpoint must hold them, not the best ones.
  const std::vector<Tensor> last = copy_values();
  write_values(best_);
  std::vector<Scores> scores;
  std::vector<ScoredLines> lines;
  try {
    scores = evaluate(&TaskRun::test, stop, observer_.on_predictions ? &lines : nullptr);
  } catch (const Interrupted&) {
    write_values(last);
    throw;
  }
  for (std::size_t t = 0; t < tasks_->size(); ++t) {
    const std::string& name = (*tasks_)[t].declaration.name;
    report("test", name, *state_.best_step, scores[t].metrics);
    if (!lines.empty()) observer_.on_predictions(name, lines[t]);
  }
}

void TrainingTrial::report(
    const std::string& split, const std::string& task, std::int64_t step,
    const std::vector<std::pair<std::string, std::optional<double>>>& metrics) const {
  if (!observer_.on_metric) return;
  for (const auto& [name, value] : metrics) observer_.on_metric({step, split, task, name, value});
}

std::vector<Tensor> TrainingTrial::copy_values() const {
  std::vector<Tensor> values;
  for (const Parameter& parameter : optimizer_.parameters()) {
    values.push_back(parameter.value.clone());
  }
  return values;
}

void TrainingTrial::write_values(const std::vector<Tensor>& values) const {
  for (std::size_t i = 0; i < values.size(); ++i) optimizer_.parameters()[i].value.copy_(values[i]);
}

NamedTensors TrainingTrial::tensors() const {
  NamedTensors all;
  for (std::size_t i = 0; i < optimizer_.parameters().size(); ++i) {
    const Parameter& parameter = optimizer_.parameters()[i];
    all.emplace(parameter.name, parameter.value);
    if (!best_.empty()) all.emplace("best." + parameter.name, best_[i]);
  }
  for (const auto& [name, tensor] : optimizer_.state()) all.emplace("optimizer." + name, tensor);
  return all;
}

void TrainingTrial::restore(const TrainingState& state, const NamedTensors& from) {
  state_ = state;
  if (state.best_step) best_ = copy_values();
  for (const auto& [name, tensor] : tensors()) {
    const auto found = from.find(name);
    Tensor saved = found == from.end() ? Tensor() : found->second;
    // petlab 0.2 stored a dimension of trials, of size 1.
    if (saved.defined() && saved.dim() == tensor.dim() + 1 && saved.size(0) == 1) {
      saved = saved.squeeze(0);
    }
    if (!saved.defined() || saved.sizes() != tensor.sizes() ||
        saved.scalar_type() != tensor.scalar_type()) {
      throw Error("the checkpoint's tensor " + name + " is missing or has another shape than " +
                  c10::str(tensor.sizes()));
    }
    tensor.copy_(saved);
  }
  optimizer_.set_steps(state.step);
}

}  // namespace petlab::trainer
