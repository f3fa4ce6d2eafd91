#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace petlab::orchestrator {

/// A trial as the schedule sees it.
struct Task {
  /// Trials of one group share a backbone: a worker that has it in memory takes them first.
  std::string group;
  /// Seconds that it is expected to take; absent: not known, then it counts as long.
  std::optional<double> expected_seconds;
  /// Those with a higher one go before all others.
  std::int64_t priority = 0;
  /// Must be the only one that its worker has: a suspect, or one that ran out of memory.
  bool alone = false;
  /// Must have its device for itself: it ran out of memory on a share.
  bool whole_device = false;
};

/// Chooses which trial runs next. Those of the highest priority go first; among them the longest
/// where durations are known, so that no long trial is left for the end; of those that are equally
/// long (within a factor of 2), one whose group the worker has. Pure: no clock, no I/O. Trials are
/// numbered in the order in which they were given.
class Schedule {
 public:
  using Time = std::chrono::steady_clock::time_point;

  explicit Schedule(std::vector<Task> tasks);

  /// Makes a trial wait for a slot, not before `ready_at` (the backoff of a retry).
  void add(std::size_t trial, Time ready_at = {});
  /// Takes the best trial that is ready out. `with_others`: it would share its worker with trials
  /// that this has already, so none that must be alone is given. `fits`: only trials of which it is
  /// true; empty: all.
  std::optional<std::size_t> take(const std::string& group, bool with_others, Time now,
                                  const std::function<bool(std::size_t)>& fits = {});
  /// The best trial that is ready and fits, for a worker without a group; it stays.
  std::optional<std::size_t> best(Time now, const std::function<bool(std::size_t)>& fits) const;
  /// The earliest time at which take() gives something again; std::nullopt where nothing waits.
  std::optional<Time> next_ready() const;
  std::size_t waiting() const { return waiting_.size(); }
  /// Takes a trial out that waits; false where it does not.
  bool remove(std::size_t trial);

  Task& task(std::size_t trial) { return tasks_.at(trial); }
  const Task& task(std::size_t trial) const { return tasks_.at(trial); }

 private:
  struct Waiting {
    std::size_t trial;
    Time ready_at;
  };
  bool before(std::size_t a, std::size_t b) const;
  std::vector<Task> tasks_;
  std::vector<Waiting> waiting_;  // the best last
  std::multiset<Time> ready_;     // their times
};

/// How long a retry waits: `first` for the first failure, doubled with each, at most 64 times.
std::chrono::milliseconds backoff(std::chrono::milliseconds first, std::int64_t failures);

}  // namespace petlab::orchestrator
