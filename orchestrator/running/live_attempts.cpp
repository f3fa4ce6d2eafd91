#include "orchestrator/running/live_attempts.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/invariant.h"

namespace petlab::orchestrator {

std::string_view to_string(AttemptState state) {
  constexpr std::string_view names[] = {"claimed", "vanished", "prepared",
                                        "given",   "begun",    "over"};
  return names[static_cast<std::size_t>(state)];
}

bool may_follow(AttemptState from, AttemptState to) {
  switch (from) {
    case AttemptState::claimed:
      return to == AttemptState::prepared || to == AttemptState::vanished;
    case AttemptState::prepared:
      return to == AttemptState::given || to == AttemptState::over;
    case AttemptState::given:
      return to == AttemptState::begun || to == AttemptState::over;
    case AttemptState::begun:
      return to == AttemptState::over;
    case AttemptState::vanished:
    case AttemptState::over:
      return false;
  }
  return false;
}

bool note_memory(Reported& reported, const IngestUpdate& update) {
  const auto raise_to = [&](const std::optional<double>& memory) {
    if (!memory || *memory <= reported.device_memory_mib) return false;
    reported.device_memory_mib = *memory;
    return true;
  };
  bool grew = update.progress && raise_to(update.progress->device_memory_mib);
  if (grew) reported.grew_at = update.progress->step;
  const auto* finished = update.over ? std::get_if<protocol::Finished>(&*update.over) : nullptr;
  if (finished != nullptr) grew = raise_to(finished->device_memory_mib) || grew;
  return grew;
}

void LiveAttempt::become(AttemptState state) {
  PETLAB_INVARIANT(may_follow(state_, state),
                   fmt::format("attempt {} of {} goes from {} to {}", attempt.number,
                               attempt.trial_id, to_string(state_), to_string(state)));
  state_ = state;
}

LiveAttempts::LiveAttempts(EventLoop& loop)
    : watch_(loop.io(), [this](int watch) {
        const auto found = by_watch_.find(watch);
        if (found != by_watch_.end()) news_.insert(found->second);
      }) {}

LiveAttempt& LiveAttempts::add(protocol::TrialDirectory directory, results::AttemptRef attempt,
                               BestMetric best, AttemptState state) {
  PETLAB_INVARIANT(!entries_.contains(attempt.key), fmt::format("attempt {} of {} is claimed twice",
                                                                attempt.number, attempt.trial_id));
  attempts_.emplace_front(std::move(directory), std::move(attempt), std::move(best), state);
  entries_[attempts_.front().attempt.key].place = attempts_.begin();
  return attempts_.front();
}

void LiveAttempts::watch(const LiveAttempt& live) {
  Entry& entry = entries_.at(live.attempt.key);
  entry.watch = watch_.add(live.directory.folder());
  if (entry.watch >= 0) by_watch_[entry.watch] = &live;
}

void LiveAttempts::remove(const LiveAttempt& live) {
  const auto found = entries_.find(live.attempt.key);
  const Entry entry = found->second;
  watch_.remove(entry.watch);
  by_watch_.erase(entry.watch);
  news_.erase(&live);
  std::erase(launched_, &live);
  entries_.erase(found);
  attempts_.erase(entry.place);
}

void LiveAttempts::mark_news(const LiveAttempt& live) { news_.insert(&live); }

void LiveAttempts::note_launch(const LiveAttempt& live) {
  if (std::find(launched_.begin(), launched_.end(), &live) == launched_.end()) {
    launched_.push_back(&live);
  }
}

std::vector<LiveAttempt*> LiveAttempts::take_news() {
  std::vector<LiveAttempt*> with_news;
  with_news.reserve(news_.size());
  for (const LiveAttempt* live : std::exchange(news_, {})) {
    with_news.push_back(&*entries_.at(live->attempt.key).place);
  }
  return with_news;
}

}  // namespace petlab::orchestrator
