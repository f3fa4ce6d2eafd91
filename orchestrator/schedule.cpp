#include "orchestrator/schedule.h"

#include <algorithm>
#include <cmath>

namespace petlab::orchestrator {
namespace {

// Durations by powers of two: measured times differ from run to run, a backbone's loading does not.
int length_class(const Task& task) {
  if (!task.expected_seconds) return 1 << 20;
  return static_cast<int>(std::floor(std::log2(std::max(*task.expected_seconds, 1e-3))));
}

}  // namespace

Schedule::Schedule(std::vector<Task> tasks) : tasks_(std::move(tasks)) {}

bool Schedule::before(std::size_t a, std::size_t b) const {
  const int a_class = length_class(tasks_[a]);
  const int b_class = length_class(tasks_[b]);
  if (a_class != b_class) return a_class > b_class;
  return a < b;
}

void Schedule::add(std::size_t trial, Time ready_at) {
  const auto place = std::lower_bound(
      waiting_.begin(), waiting_.end(), trial,
      [this](const Waiting& waiting, std::size_t added) { return before(added, waiting.trial); });
  waiting_.insert(place, {trial, ready_at});
  ready_.insert(ready_at);
}

std::optional<std::size_t> Schedule::take(const std::string& group, bool with_others, Time now) {
  auto best = waiting_.rend();
  for (auto entry = waiting_.rbegin(); entry != waiting_.rend(); ++entry) {
    if (entry->ready_at > now) continue;
    const Task& task = tasks_[entry->trial];
    if (with_others && task.alone) continue;
    if (best != waiting_.rend() && length_class(task) != length_class(tasks_[best->trial])) break;
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
