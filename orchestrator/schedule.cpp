#include "orchestrator/schedule.h"

#include <algorithm>
#include <cmath>
#include <tuple>

namespace petlab::orchestrator {
namespace {

// What is not known counts as longer than all that is.
constexpr double kUnknownSeconds = 1e300;

// Durations by powers of two: measured times differ from run to run, a backbone's loading does not.
int length_class(const Task& task) {
  const double seconds = task.expected_seconds.value_or(kUnknownSeconds);
  return static_cast<int>(std::floor(std::log2(std::max(seconds, 1e-3))));
}

bool as_urgent(const Task& a, const Task& b) {
  return a.priority == b.priority && length_class(a) == length_class(b);
}

}  // namespace

Schedule::Schedule(std::vector<Task> tasks) : tasks_(std::move(tasks)) {}

bool Schedule::before(std::size_t a, std::size_t b) const {
  const auto rank = [this](std::size_t trial) {
    const Task& task = tasks_[trial];
    return std::tuple(-task.priority, -task.expected_seconds.value_or(kUnknownSeconds), trial);
  };
  return rank(a) < rank(b);
}

void Schedule::add(std::size_t trial, Time ready_at) {
  const auto place = std::lower_bound(
      waiting_.begin(), waiting_.end(), trial,
      [this](const Waiting& waiting, std::size_t added) { return before(added, waiting.trial); });
  waiting_.insert(place, {trial, ready_at});
  ready_.insert(ready_at);
}

std::optional<std::size_t> Schedule::take(const std::string& group, bool with_others, Time now,
                                          const std::function<bool(std::size_t)>& fits) {
  auto best = waiting_.rend();
  for (auto entry = waiting_.rbegin(); entry != waiting_.rend(); ++entry) {
    if (entry->ready_at > now) continue;
    const Task& task = tasks_[entry->trial];
    if (with_others && task.alone) continue;
    if (best != waiting_.rend() && !as_urgent(task, tasks_[best->trial])) break;
    if (fits && !fits(entry->trial)) continue;
    const bool same_group = task.group == group;
    if (best == waiting_.rend() || same_group) best = entry;
    if (same_group || group.empty()) break;
  }
  if (best == waiting_.rend()) return std::nullopt;
  const std::size_t trial = best->trial;
  ready_.erase(ready_.find(best->ready_at));
  waiting_.erase(std::next(best).base());
  return trial;
}

std::optional<std::size_t> Schedule::best(Time now,
                                          const std::function<bool(std::size_t)>& fits) const {
  for (auto entry = waiting_.rbegin(); entry != waiting_.rend(); ++entry) {
    if (entry->ready_at <= now && (!fits || fits(entry->trial))) return entry->trial;
  }
  return std::nullopt;
}

std::optional<Schedule::Time> Schedule::next_ready() const {
  return ready_.empty() ? std::nullopt : std::optional(*ready_.begin());
}

bool Schedule::remove(std::size_t trial) {
  const auto found = std::find_if(waiting_.begin(), waiting_.end(),
                                  [trial](const Waiting& entry) { return entry.trial == trial; });
  if (found == waiting_.end()) return false;
  ready_.erase(ready_.find(found->ready_at));
  waiting_.erase(found);
  return true;
}

std::chrono::milliseconds backoff(std::chrono::milliseconds first, std::int64_t failures) {
  return first * (std::int64_t{1} << std::clamp<std::int64_t>(failures - 1, 0, 6));
}

}  // namespace petlab::orchestrator
