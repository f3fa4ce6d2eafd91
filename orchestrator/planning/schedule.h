#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
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
  /// Seconds that it is expected to take; absent: not known, then it counts as long.
  std::optional<double> expected_seconds;
  /// Those with a higher one go before all others.
  std::int64_t priority = 0;
  /// Must be the only one that its worker has: a suspect, or one that ran out of memory.
  bool alone = false;
  /// Must have its device for itself: it ran out of memory on a share.
  bool whole_device = false;
};

/// A set of numbers below a bound that is known from the start: a bit each, with a bit over each 64
/// of them, and so on. Every call takes a few steps, however many are in it.
class NumberSet {
 public:
  explicit NumberSet(std::size_t bound = 0);
  void insert(std::size_t number);
  void erase(std::size_t number);
  /// The smallest that is not below `least`.
  std::optional<std::size_t> first(std::size_t least = 0) const;

 private:
  std::vector<std::vector<std::uint64_t>> levels_;  // the numbers first, a single word last
};

/// Chooses which trial runs next. Those of the highest priority go first; among them the longest
/// where durations are known, so that no long trial is left for the end; of those that are equally
/// long (within a factor of 2), one whose group the worker has. Pure: no clock, no I/O. Trials are
/// numbered in the order in which they were given. A call takes no longer where more wait, but for
/// those with `fits`, which try one trial after the other. `now` never goes back.
class Schedule {
 public:
  using Time = std::chrono::steady_clock::time_point;

  explicit Schedule(std::vector<ScheduledTrial> trials);

  /// Makes a trial that does not wait yet wait for a slot, not before `ready_at` (the backoff of a
  /// retry).
  void add(std::size_t trial, Time ready_at = {});
  /// Takes the best trial that is ready out. `with_others`: it would share its worker with trials
  /// that this has already, so none that must be alone is given. `fits`: only trials of which it is
  /// true; empty: all.
  std::optional<std::size_t> take(const std::string& group, bool with_others, Time now,
                                  const std::function<bool(std::size_t)>& fits = {});
  /// The best trial that is ready and fits, for a worker without a group; it stays.
  std::optional<std::size_t> best(Time now, const std::function<bool(std::size_t)>& fits);
  /// The earliest time at which take() gives something again, Time() where it is ready already;
  /// std::nullopt where nothing waits.
  std::optional<Time> next_ready() const;
  std::size_t waiting() const { return ready_ + delayed_.size(); }
  /// Takes a trial out that waits; false where it does not.
  bool remove(std::size_t trial);

  const ScheduledTrial& trial(std::size_t trial) const { return trials_.at(trial); }
  /// From now on it must be alone; `whole_device`: also on its device.
  void set_alone(std::size_t trial, bool whole_device);

 private:
  enum class Standing : std::uint8_t { absent, delayed, ready };
  // Where a trial stands among all, and among those of its group: the smaller, the better.
  struct Place {
    std::size_t rank = 0;
    std::size_t group = 0;
    std::size_t rank_in_group = 0;
    Standing standing = Standing::absent;
    Time ready_at;  // of a delayed one
  };
  // The trials of one group, the best first.
  struct Group {
    std::vector<std::size_t> trials;
    NumberSet ready[2];  // ranks in the group: of those that may have company, of the others
  };
  using Fits = std::function<bool(std::size_t)>;

  void make_ready(std::size_t trial);
  void let_go(std::size_t trial);
  void wake(Time now);
  std::optional<std::size_t> best_of(const NumberSet (&ready)[2],
                                     const std::vector<std::size_t>& order, bool with_others,
                                     const Fits& fits) const;
  bool as_urgent(std::size_t a, std::size_t b) const;

  std::vector<ScheduledTrial> trials_;
  std::vector<Place> places_;
  std::vector<std::size_t> order_;  // trials by rank
  NumberSet by_rank_[2];            // as Group::ready, of all
  std::vector<Group> groups_;
  std::unordered_map<std::string, std::size_t> group_numbers_;
  std::set<std::pair<Time, std::size_t>> delayed_;
  std::size_t ready_ = 0;  // how many
};

/// How long a retry waits: `first` for the first failure, doubled with each, at most 64 times.
std::chrono::milliseconds backoff(std::chrono::milliseconds first, std::int64_t failures);

}  // namespace petlab::orchestrator
