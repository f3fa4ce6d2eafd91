#include "orchestrator/planning/schedule.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <tuple>

namespace petlab::orchestrator {
namespace {

constexpr std::size_t kBits = 64;

// An unknown duration counts as longer than any known one.
constexpr double kUnknownSeconds = 1e300;

// Groups durations by powers of two: measured times vary from run to run, but loading a backbone
// always takes time.
int length_class(const ScheduledTrial& trial) {
  const double seconds = trial.expected_seconds.value_or(kUnknownSeconds);
  return static_cast<int>(std::floor(std::log2(std::max(seconds, 1e-3))));
}

}  // namespace

NumberSet::NumberSet(std::size_t bound) {
  do {
    bound = (bound + kBits - 1) / kBits;
    levels_.emplace_back(bound);
  } while (bound > 1);
}

void NumberSet::insert(std::size_t number) {
  for (std::vector<std::uint64_t>& level : levels_) {
    level[number / kBits] |= std::uint64_t{1} << number % kBits;
    number /= kBits;
  }
}

void NumberSet::erase(std::size_t number) {
  for (std::vector<std::uint64_t>& level : levels_) {
    std::uint64_t& word = level[number / kBits];
    word &= ~(std::uint64_t{1} << number % kBits);
    if (word != 0) return;
    number /= kBits;
  }
}

std::optional<std::size_t> NumberSet::first(std::size_t least) const {
  // Goes up until a word has a bit at or after the position, then down along the lowest set bits.
  std::size_t at = least;
  for (std::size_t level = 0; level < levels_.size(); ++level) {
    if (at / kBits < levels_[level].size()) {
      const std::uint64_t left = levels_[level][at / kBits] >> at % kBits << at % kBits;
      if (left != 0) {
        at = at / kBits * kBits + static_cast<std::size_t>(std::countr_zero(left));
        while (level-- > 0) {
          at = at * kBits + static_cast<std::size_t>(std::countr_zero(levels_[level][at]));
        }
        return at;
      }
    }
    at = at / kBits + 1;
  }
  return std::nullopt;
}

Schedule::Schedule(std::vector<ScheduledTrial> trials)
    : trials_(std::move(trials)), places_(trials_.size()), order_(trials_.size()) {
  std::iota(order_.begin(), order_.end(), std::size_t{0});
  std::sort(order_.begin(), order_.end(), [this](std::size_t a, std::size_t b) {
    const auto urgency = [this](std::size_t trial) {
      const ScheduledTrial& entry = trials_[trial];
      return std::tuple(-entry.priority, -entry.gpus,
                        -entry.expected_seconds.value_or(kUnknownSeconds), trial);
    };
    return urgency(a) < urgency(b);
  });
  for (std::size_t rank = 0; rank < order_.size(); ++rank) {
    const std::size_t trial = order_[rank];
    Place& place = places_[trial];
    place.rank = rank;
    place.group = group_numbers_.emplace(trials_[trial].group, groups_.size()).first->second;
    if (place.group == groups_.size()) groups_.emplace_back();
    std::vector<std::size_t>& group_trials = groups_[place.group].trials;
    place.rank_in_group = group_trials.size();
    group_trials.push_back(trial);
  }
  for (NumberSet& ready : by_rank_) ready = NumberSet(order_.size());
  for (Group& group : groups_) {
    for (NumberSet& ready : group.ready) ready = NumberSet(group.trials.size());
  }
}

bool Schedule::as_urgent(std::size_t a, std::size_t b) const {
  return trials_[a].priority == trials_[b].priority && trials_[a].gpus == trials_[b].gpus &&
         length_class(trials_[a]) == length_class(trials_[b]);
}

std::optional<std::int64_t> Schedule::highest_priority() const {
  std::optional<std::int64_t> highest;
  for (const NumberSet& ready : by_rank_) {
    const std::optional<std::size_t> rank = ready.first();
    if (!rank) continue;
    const std::int64_t priority = trials_[order_[*rank]].priority;
    highest = std::max(highest.value_or(priority), priority);
  }
  return highest;
}

void Schedule::make_ready(std::size_t trial) {
  Place& place = places_[trial];
  place.standing = Standing::ready;
  ++ready_;
  const std::size_t alone = trials_[trial].alone ? 1 : 0;
  by_rank_[alone].insert(place.rank);
  groups_[place.group].ready[alone].insert(place.rank_in_group);
}

void Schedule::withdraw(std::size_t trial) {
  Place& place = places_[trial];
  if (place.standing == Standing::delayed) {
    delayed_.erase({place.ready_at, trial});
  } else {
    --ready_;
    const std::size_t alone = trials_[trial].alone ? 1 : 0;
    by_rank_[alone].erase(place.rank);
    groups_[place.group].ready[alone].erase(place.rank_in_group);
  }
  if (--by_gpus_[trials_[trial].gpus] == 0) by_gpus_.erase(trials_[trial].gpus);
  place.standing = Standing::absent;
}

void Schedule::wake(Time now) {
  while (!delayed_.empty() && delayed_.begin()->first <= now) {
    const std::size_t trial = delayed_.begin()->second;
    delayed_.erase(delayed_.begin());
    make_ready(trial);
  }
}

void Schedule::add(std::size_t trial, Time ready_at) {
  ++by_gpus_[trials_[trial].gpus];
  if (ready_at == Time()) {
    make_ready(trial);
    return;
  }
  places_[trial].standing = Standing::delayed;
  places_[trial].ready_at = ready_at;
  delayed_.emplace(ready_at, trial);
}

std::optional<std::size_t> Schedule::best_of(const NumberSet (&ready)[2],
                                             const std::vector<std::size_t>& order,
                                             bool with_others, const Fits& fits) const {
  std::optional<std::size_t> found;
  for (int alone = 0; alone < (with_others ? 1 : 2); ++alone) {
    for (std::optional<std::size_t> rank = ready[alone].first(); rank && (!found || *rank < *found);
         rank = ready[alone].first(*rank + 1)) {
      if (fits && !fits(order[*rank])) continue;
      found = rank;
      break;
    }
  }
  return found ? std::optional(order[*found]) : std::nullopt;
}

std::optional<std::size_t> Schedule::take(const std::string& group, bool with_others, Time now,
                                          const Fits& fits) {
  wake(now);
  std::optional<std::size_t> best = best_of(by_rank_, order_, with_others, fits);
  if (!best) return std::nullopt;
  const auto wanted = group_numbers_.find(group);
  if (wanted != group_numbers_.end() && wanted->second != places_[*best].group) {
    const Group& preferred = groups_[wanted->second];
    const std::optional<std::size_t> same =
        best_of(preferred.ready, preferred.trials, with_others, fits);
    if (same && as_urgent(*same, *best)) best = same;
  }
  withdraw(*best);
  return best;
}

std::optional<std::size_t> Schedule::best(Time now, const Fits& fits) {
  wake(now);
  return best_of(by_rank_, order_, false, fits);
}

std::optional<Schedule::Time> Schedule::next_ready() const {
  if (ready_ > 0) return Time();
  return delayed_.empty() ? std::nullopt : std::optional(delayed_.begin()->first);
}

bool Schedule::remove(std::size_t trial) {
  if (places_[trial].standing == Standing::absent) return false;
  withdraw(trial);
  return true;
}

void Schedule::set_alone(std::size_t trial, bool whole_device) {
  const Place place = places_[trial];
  const bool waits = remove(trial);
  trials_[trial].alone = true;
  trials_[trial].whole_device = trials_[trial].whole_device || whole_device;
  if (waits) add(trial, place.standing == Standing::delayed ? place.ready_at : Time());
}

std::chrono::milliseconds backoff(std::chrono::milliseconds first, std::int64_t failures) {
  return first * (std::int64_t{1} << std::clamp<std::int64_t>(failures - 1, 0, 6));
}

}  // namespace petlab::orchestrator
