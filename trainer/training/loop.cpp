#include "trainer/training/loop.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <stdexcept>
#include <utility>

#include "trainer/training/gang.h"
#include "trainer/training/step.h"

namespace petlab::trainer {
namespace {

// The maximum number of steps whose losses have not been read back from the device.
constexpr std::size_t kMostUnread = 16;

std::vector<std::unique_ptr<TrainingTrial>> alone(std::unique_ptr<TrainingTrial> trial) {
  std::vector<std::unique_ptr<TrainingTrial>> all;
  all.push_back(std::move(trial));
  return all;
}

}  // namespace

TrainingLoop::TrainingLoop(const sweeps::TrialConfig& config, SharedTasks tasks,
                           const Pretrained& pretrained, LoopObserver observer)
    : TrainingLoop(alone(std::make_unique<TrainingTrial>(config, std::move(tasks), pretrained,
                                                         std::move(observer)))) {}

TrainingLoop::TrainingLoop(std::vector<std::unique_ptr<TrainingTrial>> trials)
    : trials_(std::move(trials)), left_(trials_.size(), false) {
  if (trials_.empty()) throw std::invalid_argument("found no trial to train");
  for (std::size_t k = 0; k < trials_.size(); ++k) {
    training_.push_back(k);
    if (k == 0) continue;
    if (const auto why = why_not_in_one_gang(trials_.front()->config(), trials_[k]->config())) {
      throw std::invalid_argument("the trials cannot be trained together: " + *why);
    }
  }
}

template <typename Work>
void TrainingLoop::for_trial(std::size_t k, Work work) {
  if (left_[k]) return;
  try {
    work(*trials_[k]);
  } catch (const NotFinite&) {
    if (!trials_[k]->observer().on_end) throw;
    leave(k, std::current_exception());
  }
}

void TrainingLoop::leave(std::size_t k, const std::exception_ptr& failure) {
  left_[k] = true;
  if (trials_[k]->observer().on_end) trials_[k]->observer().on_end(failure);
}

void TrainingLoop::train_step() {
  using clock = std::chrono::steady_clock;
  const auto began = clock::now();
  std::vector<TrainingTrial*> trials;
  for (const std::size_t k : training_) trials.push_back(trials_[k].get());
  unread_.push_back(take_step(trials));
  for (TrainingTrial* trial : trials) trial->finish_step();
  const bool wanted = std::any_of(trials.begin(), trials.end(), [](const TrainingTrial* trial) {
    return trial->is_to_be_validated() || trial->is_checkpoint_due();
  });
  const bool read = wanted || unread_.back().device().is_cpu() || unread_.size() >= kMostUnread;
  Tensor losses;
  if (read) losses = take_losses();
  const double seconds = std::chrono::duration<double>(clock::now() - began).count();
  for (TrainingTrial* trial : trials) {
    trial->add_seconds(seconds / static_cast<double>(trials.size()));
  }
  if (read) report_losses(losses);
  for (const std::size_t k : training_) {
    for_trial(k, [](const TrainingTrial& trial) {
      if (trial.is_checkpoint_due()) trial.observer().on_checkpoint();
    });
  }
}

Tensor TrainingLoop::take_losses() {
  const std::vector<Tensor> unread = std::exchange(unread_, {});
  if (unread.empty()) return at::zeros({0, 0}, at::kDouble);
  return at::stack(unread).to(at::kCPU);
}

void TrainingLoop::report_losses(const Tensor& losses) {
  for (std::int64_t s = 0; s < losses.size(0); ++s) {
    const double* const of_step = losses.const_data_ptr<double>() + s * losses.size(1);
    for (std::size_t i = 0; i < training_.size(); ++i) {
      for_trial(training_[i], [&](TrainingTrial& trial) {
        trial.note_loss(trial.state().step - losses.size(0) + s + 1, of_step[i]);
      });
    }
  }
}

void TrainingLoop::stop_trials() {
  std::vector<std::size_t> stopping;
  for (const std::size_t k : training_) {
    const LoopObserver& observer = trials_[k]->observer();
    if (observer.is_to_stop && observer.is_to_stop()) stopping.push_back(k);
  }
  if (stopping.empty()) return;
  report_losses(take_losses());
  for (const std::size_t k : stopping) {
    if (!left_[k]) leave(k, std::make_exception_ptr(Interrupted()));
  }
  std::erase_if(training_, [this](std::size_t k) { return left_[k]; });
}

void TrainingLoop::run(const std::atomic<bool>& stop) {
  std::optional<std::int64_t> step;
  for (const std::unique_ptr<TrainingTrial>& trial : trials_) {
    if (trial->is_trained()) continue;
    const std::int64_t own = trial->state().step;
    if (step && *step != own) {
      throw std::invalid_argument("the trials cannot be trained together: they are at the steps " +
                                  std::to_string(*step) + " and " + std::to_string(own));
    }
    step = own;
  }
  while (!training_.empty()) {
    if (stop) {
      report_losses(take_losses());
      throw Interrupted();
    }
    stop_trials();
    for (const std::size_t k : training_) {
      for_trial(k, [&](TrainingTrial& trial) {
        if (trial.is_to_be_validated()) trial.validate(stop);
        if (!trial.is_trained()) return;
        trial.test(stop);
        leave(k, nullptr);
      });
    }
    std::erase_if(training_, [this](std::size_t k) { return left_[k]; });
    if (!training_.empty()) train_step();
  }
}

}  // namespace petlab::trainer
