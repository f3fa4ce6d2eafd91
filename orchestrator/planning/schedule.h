#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace petlab::orchestrator {

/// A trial as the schedule sees it.
struct ScheduledTrial {
  /// Trials of one group share a backbone: a worker that has it in memory takes them first.
  std::string group;
  /// Expected duration in seconds; absent: unknown, which counts as long.
  std::optional<double> expected_seconds;
  /// Trials with a higher priority start first.
  std::int64_t priority = 0;
  /// True if its worker may have no other trial: it is a suspect, or ran out of memory.
  bool alone = false;
  /// True if it needs a device for itself, because it ran out of memory on a share.
  bool whole_device = false;
  /// The GPUs of its worker.
  std::int64_t gpus = 1;
};

/// A set of numbers below a fixed bound, as a tree of bits: one per number, one above each 64 of
/// these, and so on. The time of a call does not depend on the number of elements.
class NumberSet {
 public:
  explicit NumberSet(std::size_t bound = 0);
  void insert(std::size_t number);
  void erase(std::size_t number);
  /// The smallest number >= `least`; std::nullopt if there is none.
  std::optional<std::size_t> first(std::size_t least = 0) const;

 private:
  std::vector<std::vector<std::uint64_t>> levels_;  // the numbers first, a single word last
};

/// Chooses which trial runs next. Trials of the highest priority go first. Among these, those with
/// the most GPUs go first, since small ones fit into what they leave. Among these, the longest go
/// first if durations are known, so that no long trial is left for the end; among equally long
/// ones (within a factor of 2), a trial of the worker's group. Pure: no clock, no I/O. Trials are
/// numbered in the order in which they were given. The time of a call does not grow with the number
/// of waiting trials, except with `fits`, which is tried on one trial after the other. `now` must
/// never go back.
class Schedule {
 public:
  using Time = std::chrono::steady_clock::time_point;

  explicit Schedule(std::vector<ScheduledTrial> trials);

  /// Adds a trial, which must not be waiting already. It becomes ready at `ready_at` (the backoff
  /// of a retry).
  void add(std::size_t trial, Time ready_at = {});
  /// Removes and returns the best ready trial. `with_others`: the worker already has other trials,
  /// so no trial that must be alone is returned. `fits`: only trials for which it is true; empty:
  /// all.
  std::optional<std::size_t> take(const std::string& group, bool with_others, Time now,
                                  const std::function<bool(std::size_t)>& fits = {});
  /// Returns the best ready trial that fits, for a worker without a group, but does not remove it.
  std::optional<std::size_t> best(Time now, const std::function<bool(std::size_t)>& fits);
  /// The earliest time at which take() can return a trial: Time() if one is ready, std::nullopt if
  /// none is waiting.
  std::optional<Time> next_ready() const;
  /// Of the ready trials; std::nullopt if there are none.
  std::optional<std::int64_t> highest_priority() const;
  std::size_t waiting() const { return ready_ + delayed_.size(); }
  /// The number of waiting trials by their GPUs; no zeros.
  const std::map<std::int64_t, std::int64_t>& waiting_by_gpus() const { return by_gpus_; }
  std::int64_t waiting(std::int64_t gpus) const {
    const auto found = by_gpus_.find(gpus);
    return found == by_gpus_.end() ? 0 : found->second;
  }
  /// Removes a waiting trial; false if it is not waiting.
  bool remove(std::size_t trial);

  const ScheduledTrial& trial(std::size_t trial) const { return trials_.at(trial); }
  /// Marks a trial that must be alone in its worker; `whole_device`: also on its device.
  void set_alone(std::size_t trial, bool whole_device);

 private:
  enum class Standing : std::uint8_t { absent, delayed, ready };
  // A trial's ranks among all trials and within its group; lower ranks go first.
  struct Place {
    std::size_t rank = 0;
    std::size_t group = 0;
    std::size_t rank_in_group = 0;
    Standing standing = Standing::absent;
    Time ready_at;  // if delayed
  };
  // The trials of one group, the best first.
  struct Group {
    std::vector<std::size_t> trials;
    NumberSet ready[2];  // ranks in the group: [0] may share a worker, [1] must be alone
  };
  using Fits = std::function<bool(std::size_t)>;

  void make_ready(std::size_t trial);
  void withdraw(std::size_t trial);
  void wake(Time now);
  std::optional<std::size_t> best_of(const NumberSet (&ready)[2],
                                     const std::vector<std::size_t>& order, bool with_others,
                                     const Fits& fits) const;
  bool as_urgent(std::size_t a, std::size_t b) const;

  std::vector<ScheduledTrial> trials_;
  std::vector<Place> places_;
  std::vector<std::size_t> order_;  // trials by rank
  NumberSet by_rank_[2];            // as Group::ready, but among all trials
  std::vector<Group> groups_;
  std::unordered_map<std::string, std::size_t> group_numbers_;
  std::set<std::pair<Time, std::size_t>> delayed_;
  std::size_t ready_ = 0;  // number of ready trials
  std::map<std::int64_t, std::int64_t> by_gpus_;
};

/// The delay before a retry: `first` after the first failure, doubled with each further one, at
/// most 64 times `first`.
std::chrono::milliseconds backoff(std::chrono::milliseconds first, std::int64_t failures);

}  // namespace petlab::orchestrator
