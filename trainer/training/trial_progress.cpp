#include "trainer/training/trial_progress.h"

#include "metrics/selection.h"
#include "trainer/files/error.h"

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

}  // namespace

TrialProgress::TrialProgress(std::int64_t k, sweeps::TrialConfig config,
                             const std::vector<TaskRun>& tasks, LoopObserver observer)
    : k_(k),
      config_(std::move(config)),
      observer_(std::move(observer)),
      order_(config_.seed.value, train_sizes(tasks), config_.training) {}

bool TrialProgress::is_to_be_validated() const {
  return state_.evaluations < order_.evaluations(state_.step);
}

bool TrialProgress::is_trained() const {
  return state_.step >= order_.steps() && !is_to_be_validated();
}

void TrialProgress::note_loss(std::int64_t step, double loss) {
  state_.loss_sum += loss;
  if (observer_.on_step) observer_.on_step(step, order_.steps(), loss);
}

void TrialProgress::finish_evaluation(const std::vector<TaskRun>& tasks,
                                      const std::vector<Scores>& scores,
                                      const std::vector<Parameter>& parameters) {
  const std::int64_t steps = state_.step - state_.evaluations * order_.steps_an_evaluation();
  const std::string whole = tasks.size() == 1 ? tasks.front().declaration.name : "all";
  report("train", whole, state_.step, {{"loss", state_.loss_sum / static_cast<double>(steps)}});
  std::vector<metrics::SelectedMetric> selected;
  for (std::size_t t = 0; t < tasks.size(); ++t) {
    report("validation", tasks[t].declaration.name, state_.step, scores[t].metrics);
    selected.insert(selected.end(), scores[t].selected.begin(), scores[t].selected.end());
  }
  const std::optional<double> value = metrics::selection_score(selected);
  if (!state_.best_step || metrics::is_better_selection(value, state_.best_value)) {
    state_.best_step = state_.step;
    state_.best_value = value;
    best_ = copy_values(parameters);
  }
  state_.loss_sum = 0;
  ++state_.evaluations;
}

void TrialProgress::report(
    const std::string& split, const std::string& task, std::int64_t step,
    const std::vector<std::pair<std::string, std::optional<double>>>& metrics) const {
  if (!observer_.on_metric) return;
  for (const auto& [name, value] : metrics) observer_.on_metric({step, split, task, name, value});
}

std::vector<Tensor> TrialProgress::copy_values(const std::vector<Parameter>& parameters) const {
  std::vector<Tensor> values;
  for (const Parameter& parameter : parameters) {
    values.push_back(parameter.of_trial(parameter.value, k_).clone());
  }
  return values;
}

void TrialProgress::write_values(const std::vector<Tensor>& values,
                                 const std::vector<Parameter>& parameters) const {
  for (std::size_t i = 0; i < values.size(); ++i) {
    parameters[i].of_trial(parameters[i].value, k_).copy_(values[i]);
  }
}

NamedTensors TrialProgress::tensors(const AdamW& optimizer) const {
  NamedTensors all;
  for (std::size_t i = 0; i < optimizer.parameters().size(); ++i) {
    const Parameter& parameter = optimizer.parameters()[i];
    all.emplace(parameter.name, parameter.of_trial(parameter.value, k_));
    if (!best_.empty()) all.emplace("best." + parameter.name, best_[i]);
  }
  for (const auto& [name, tensor] : optimizer.state(k_)) all.emplace("optimizer." + name, tensor);
  return all;
}

void TrialProgress::restore(const TrainingState& state, const NamedTensors& from,
                            const AdamW& optimizer) {
  state_ = state;
  if (state.best_step) best_ = copy_values(optimizer.parameters());
  for (const auto& [name, tensor] : tensors(optimizer)) {
    const auto found = from.find(name);
    if (found == from.end() || found->second.sizes() != tensor.sizes() ||
        found->second.scalar_type() != tensor.scalar_type()) {
      throw Error("the checkpoint's tensor " + name + " is missing or has another shape than " +
                  c10::str(tensor.sizes()));
    }
    tensor.copy_(found->second);
  }
}

}  // namespace petlab::trainer
