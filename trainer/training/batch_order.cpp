#include "trainer/training/batch_order.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "trainer/compute/random_stream.h"

namespace petlab::trainer {
namespace {

/// A multi-task batch comes from one task, drawn with probability ∝ (N_task / N)^(1 / 10).
constexpr double kTaskTemperature = 0.1;

std::vector<std::size_t> draw_tasks(const std::vector<std::int64_t>& sizes, std::uint64_t seed,
                                    std::int64_t steps) {
  std::vector<double> upper;
  double sum = 0;
  for (const std::int64_t size : sizes) {
    sum += std::pow(static_cast<double>(size), kTaskTemperature);
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

}  // namespace

BatchOrder::BatchOrder(std::uint64_t seed, std::vector<std::int64_t> sizes,
                       const sweeps::TrainingConfig& training)
    : seed_(seed),
      sizes_(std::move(sizes)),
      batch_size_(training.batch_size),
      epochs_(sizes_.size()) {
  std::int64_t examples = 0;
  for (const std::int64_t size : sizes_) examples += size;
  steps_an_epoch_ = (examples + batch_size_ - 1) / batch_size_;
  steps_ = training.steps > 0 ? training.steps : steps_an_epoch_ * training.epochs;
  steps_an_evaluation_ = training.evaluate_every > 0 ? training.evaluate_every : steps_an_epoch_;
  if (sizes_.size() == 1) return;
  task_of_step_ = draw_tasks(sizes_, seed_, steps_);
  std::vector<std::int64_t> turns(sizes_.size());
  for (const std::size_t task : task_of_step_) turn_of_step_.push_back(turns[task]++);
}

std::int64_t BatchOrder::evaluations(std::int64_t steps_done) const {
  const bool last = steps_done >= steps_ && steps_done % steps_an_evaluation_ != 0;
  return steps_done / steps_an_evaluation_ + (last ? 1 : 0);
}

std::vector<std::int64_t> BatchOrder::first_steps() const {
  std::vector<std::int64_t> first;
  if (task_of_step_.empty()) return first;
  for (std::size_t t = 0; t < sizes_.size(); ++t) {
    first.push_back(std::find(task_of_step_.begin(), task_of_step_.end(), t) -
                    task_of_step_.begin());
  }
  return first;
}

const std::vector<std::int64_t>& BatchOrder::order_of(std::size_t task, std::int64_t epoch) {
  Epoch& kept = epochs_[task];
  if (kept.number != epoch) {
    kept.number = epoch;
    kept.examples = epoch_order(seed_, task, static_cast<std::uint64_t>(epoch), sizes_[task]);
  }
  return kept.examples;
}

StepExamples BatchOrder::at(std::int64_t step) {
  StepExamples batch;
  if (task_of_step_.empty()) {
    // An epoch's last batch may be smaller.
    const std::vector<std::int64_t>& order = order_of(0, step / steps_an_epoch_);
    const std::int64_t from = step % steps_an_epoch_ * batch_size_;
    const std::int64_t to = std::min(static_cast<std::int64_t>(order.size()), from + batch_size_);
    batch.examples.assign(order.begin() + from, order.begin() + to);
    return batch;
  }
  // With several tasks, batches may cross the boundary between two epochs of a task.
  batch.task = task_of_step_[static_cast<std::size_t>(step)];
  const std::int64_t from = turn_of_step_[static_cast<std::size_t>(step)] * batch_size_;
  const std::int64_t n = sizes_[batch.task];
  for (std::int64_t i = from; i < from + batch_size_; ++i) {
    batch.examples.push_back(order_of(batch.task, i / n)[static_cast<std::size_t>(i % n)]);
  }
  return batch;
}

}  // namespace petlab::trainer
