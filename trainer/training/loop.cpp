#include "trainer/training/loop.h"

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <utility>

#include "trainer/training/gang.h"
#include "trainer/training/step.h"

namespace petlab::trainer {
namespace {

// The maximum number of steps whose losses have not been read back from the device.
constexpr std::size_t kMostUnread = 16;

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

std::vector<TrialProgress> progress_of(std::vector<GangTrial> trials,
                                       const std::vector<TaskRun>& tasks) {
  if (trials.empty()) throw std::invalid_argument("found no trial to train");
  std::vector<TrialProgress> all;
  for (GangTrial& trial : trials) {
    const auto k = static_cast<std::int64_t>(all.size());
    if (k > 0) {
      if (const auto why = why_not_in_one_gang(all.front().config(), trial.config)) {
        throw std::invalid_argument("the trials cannot be trained together: " + *why);
      }
    }
    all.emplace_back(k, std::move(trial.config), tasks, std::move(trial.observer));
  }
  return all;
}

std::vector<std::uint64_t> seeds_of_trials(const std::vector<TrialProgress>& trials) {
  std::vector<std::uint64_t> seeds;
  for (const TrialProgress& trial : trials) seeds.push_back(trial.config().seed.value);
  return seeds;
}

}  // namespace

TrainingLoop::TrainingLoop(const sweeps::TrialConfig& config, SharedTasks tasks,
                           const Pretrained& pretrained, LoopObserver observer)
    : TrainingLoop(std::vector<GangTrial>{{config, std::move(observer)}}, std::move(tasks),
                   pretrained) {}

TrainingLoop::TrainingLoop(std::vector<GangTrial> trials, SharedTasks tasks,
                           const Pretrained& pretrained)
    : tasks_(std::move(tasks)),
      trials_(progress_of(std::move(trials), *tasks_)),
      model_(trials_.front().config(), declarations(*tasks_), pretrained, seeds_of_trials(trials_)),
      optimizer_(model_.parameters(), optimizer_options(trials_.front().config().training),
                 static_cast<std::int64_t>(trials_.size())) {
  optimizer_.set_first_steps(trials_.front().order().first_steps());
}

void TrainingLoop::restore(const TrainingState& state, const NamedTensors& from, std::size_t k) {
  trials_[k].restore(state, from, optimizer_);
  optimizer_.set_steps(state.step);
}

std::vector<std::vector<Scores>> TrainingLoop::evaluate(
    const TokenisedSplit TaskRun::*split, const std::atomic<bool>& stop,
    std::vector<std::vector<ScoredLines>>* lines) {
  std::vector<std::vector<Scores>> scores(trials_.size());
  for (std::size_t t = 0; t < tasks_->size(); ++t) {
    model_.merge(t);
    const TokenisedSplit& examples = (*tasks_)[t].*split;
    const std::vector<Predictions> predictions = predict_trials(model_, t, examples, stop);
    for (std::size_t k = 0; k < trials_.size(); ++k) {
      scores[k].push_back(model_.objective(t).score(examples, predictions[k]));
      if (lines != nullptr && trials_[k].observer().on_predictions) {
        (*lines)[k].push_back(model_.objective(t).lines(examples, predictions[k]));
      }
    }
  }
  return scores;
}

void TrainingLoop::validate(const std::atomic<bool>& stop) {
  const std::vector<std::vector<Scores>> scores = evaluate(&TaskRun::validation, stop);
  for (std::size_t k = 0; k < trials_.size(); ++k) {
    trials_[k].finish_evaluation(*tasks_, scores[k], optimizer_.parameters());
  }
  for (const TrialProgress& trial : trials_) {
    if (trial.observer().on_checkpoint) trial.observer().on_checkpoint();
  }
}

bool TrainingLoop::is_checkpoint_due(const TrialProgress& trial) {
  const std::int64_t every = trial.config().training.checkpoint_every;
  return every > 0 && trial.state().step % every == 0 && !trial.is_to_be_validated() &&
         trial.observer().on_checkpoint;
}

void TrainingLoop::train_step() {
  using clock = std::chrono::steady_clock;
  const auto began = clock::now();
  unread_.push_back(take_step(trials_, *tasks_, model_, optimizer_));
  for (TrialProgress& trial : trials_) trial.finish_step();
  const bool wanted = std::any_of(trials_.begin(), trials_.end(), [](const TrialProgress& trial) {
    return trial.is_to_be_validated() || is_checkpoint_due(trial);
  });
  const bool read = wanted || unread_.back().device().is_cpu() || unread_.size() >= kMostUnread;
  std::vector<std::vector<double>> losses;
  if (read) losses = take_losses();
  const double seconds = std::chrono::duration<double>(clock::now() - began).count();
  for (TrialProgress& trial : trials_) {
    trial.add_seconds(seconds / static_cast<double>(trials_.size()));
  }
  report_losses(losses);
  for (const TrialProgress& trial : trials_) {
    if (is_checkpoint_due(trial)) trial.observer().on_checkpoint();
  }
}

std::vector<std::vector<double>> TrainingLoop::take_losses() {
  std::vector<std::vector<double>> all;
  const std::vector<Tensor> unread = std::exchange(unread_, {});
  std::int64_t step = trials_.front().state().step - static_cast<std::int64_t>(unread.size());
  for (const Tensor& losses : unread) all.push_back(read_losses(trials_, losses, ++step));
  return all;
}

void TrainingLoop::report_losses(const std::vector<std::vector<double>>& losses) {
  std::int64_t step = trials_.front().state().step - static_cast<std::int64_t>(losses.size());
  for (const std::vector<double>& of_step : losses) {
    ++step;
    for (std::size_t k = 0; k < trials_.size(); ++k) trials_[k].note_loss(step, of_step[k]);
  }
}

void TrainingLoop::run(const std::atomic<bool>& stop) {
  for (const TrialProgress& trial : trials_) {
    const TrainingState& first = trials_.front().state();
    if (trial.state().step != first.step || trial.state().evaluations != first.evaluations) {
      throw std::invalid_argument("the trials cannot be trained together: they are at the steps " +
                                  std::to_string(first.step) + " and " +
                                  std::to_string(trial.state().step));
    }
  }
  while (!trials_.front().is_trained()) {
    if (stop) {
      report_losses(take_losses());
      throw Interrupted();
    }
    if (trials_.front().is_to_be_validated()) {
      validate(stop);
    } else {
      train_step();
    }
  }
  test(stop);
}

void TrainingLoop::test(const std::atomic<bool>& stop) {
  // Keeps the last values: if this is interrupted, a checkpoint must hold them, not the best ones.
  std::vector<std::vector<Tensor>> last;
  for (const TrialProgress& trial : trials_) {
    last.push_back(trial.copy_values(optimizer_.parameters()));
    trial.write_values(trial.best(), optimizer_.parameters());
  }
  std::vector<std::vector<Scores>> scores;
  std::vector<std::vector<ScoredLines>> lines(trials_.size());
  try {
    scores = evaluate(&TaskRun::test, stop, &lines);
  } catch (const Interrupted&) {
    for (std::size_t k = 0; k < trials_.size(); ++k) {
      trials_[k].write_values(last[k], optimizer_.parameters());
    }
    throw;
  }
  for (std::size_t k = 0; k < trials_.size(); ++k) {
    for (std::size_t t = 0; t < tasks_->size(); ++t) {
      trials_[k].report("test", (*tasks_)[t].declaration.name, *trials_[k].state().best_step,
                        scores[k][t].metrics);
      if (!lines[k].empty()) {
        trials_[k].observer().on_predictions((*tasks_)[t].declaration.name, lines[k][t]);
      }
    }
  }
}

}  // namespace petlab::trainer
