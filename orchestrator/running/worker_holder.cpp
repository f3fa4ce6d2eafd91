#include "orchestrator/running/worker_holder.h"

#include <fmt/format.h>

#include <chrono>

#include "base/invariant.h"

namespace petlab::orchestrator {
namespace {

// Even a process of hundreds of gigabytes is gone within this time, unless an unresponsive device
// or file server holds it in the kernel.
constexpr auto kGiveUpAfterKill = std::chrono::seconds(30);

}  // namespace

std::string_view to_string(SlotState state) {
  constexpr std::string_view names[] = {"empty", "serving", "closing", "stopping", "lost", "ended"};
  return names[static_cast<std::size_t>(state)];
}

bool may_follow(SlotState from, SlotState to) {
  switch (from) {
    case SlotState::empty:
      return to == SlotState::serving;
    case SlotState::serving:
      return to == SlotState::closing || to == SlotState::stopping || to == SlotState::ended;
    case SlotState::closing:
      return to == SlotState::stopping || to == SlotState::ended;
    case SlotState::stopping:
      return to == SlotState::lost || to == SlotState::ended;
    case SlotState::lost:
      return to == SlotState::ended;
    case SlotState::ended:
      return to == SlotState::empty;
  }
  return false;
}

void WorkerHolder::become(SlotState state) {
  PETLAB_INVARIANT(may_follow(state_, state), fmt::format("slot {} goes from {} to {}", name,
                                                          to_string(state_), to_string(state)));
  state_ = state;
}

void WorkerHolder::serve(std::unique_ptr<Worker> worker, std::string code) {
  become(SlotState::serving);
  worker_ = std::move(worker);
  code_ = std::move(code);
}

void WorkerHolder::report_end(WorkerEnd end) {
  const std::string job = has_worker() ? worker_->launch().job : std::string();
  end_ = {std::move(end), job, state_ == SlotState::serving, state_ == SlotState::stopping};
  become(SlotState::ended);
}

void WorkerHolder::close(EventLoop::Time now) {
  if (state_ != SlotState::serving) return;
  become(SlotState::closing);
  asked_at_ = now;
  worker_->close();
}

void WorkerHolder::ask_to_stop(EventLoop::Time now) {
  if (!has_live_worker() || state_ == SlotState::stopping) return;
  become(SlotState::stopping);
  asked_at_ = now;
  worker_->stop();
  // A worker that waits for its next line may miss the signal, but not the end of its input.
  worker_->close();
}

void WorkerHolder::kill(EventLoop::Time now) {
  if (!has_live_worker()) return;
  if (state_ != SlotState::stopping) {
    become(SlotState::stopping);
    asked_at_ = now;
  }
  if (!killed_at_) killed_at_ = now;
  worker_->kill();
}

void WorkerHolder::enforce(EventLoop::Time now, EventLoop::Clock::duration grace, bool idle) {
  const bool to_end = state_ == SlotState::stopping || (state_ == SlotState::closing && idle);
  if (to_end && now - asked_at_ > grace) kill(now);
}

bool WorkerHolder::outlives_kill(EventLoop::Time now) const {
  return state_ == SlotState::stopping && killed_at_ && now - *killed_at_ > kGiveUpAfterKill;
}

void WorkerHolder::drop_worker() {
  worker_.reset();
  killed_at_.reset();
}

WorkerHolder::End WorkerHolder::take_end() {
  become(SlotState::empty);
  drop_worker();
  return std::exchange(end_, {});
}

}  // namespace petlab::orchestrator
