#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "orchestrator/launching/launcher.h"
#include "orchestrator/planning/schedule.h"
#include "orchestrator/running/event_loop.h"
#include "orchestrator/running/live_attempts.h"
#include "orchestrator/running/worker_holder.h"

namespace petlab::orchestrator {

/// What a worker has done with all attempts that it was ever given.
struct Served {
  bool given = false;  // it was given one
  bool begun = false;  // it has begun one
  bool over = false;   // one of them is over
};

/// A worker that has ended, with its attempts that were not known to be over.
struct EndedWorker {
  std::deque<LiveAttempt*> given;
  WorkerEnd end;
  std::string job;  // Launch::job
  Served served;
  bool asked_to_stop = false;
  /// True if the next trial may begin before this end is concluded, because the end cannot change
  /// what to run.
  bool is_clean() const;
};

/// Measures how fast a slot's trials end.
class Pace {
 public:
  explicit Pace(EventLoop::Time now) : last_over_(now) {}
  void trial_ended() { ++overs_; }
  /// A worker begins its first trial.
  void worker_begins(EventLoop::Time now) { last_over_ = now; }
  /// Adds the trials that ended since the last call to the mean.
  void learn(EventLoop::Time now);
  /// Mean time per trial, with its overhead; absent: none has ended yet.
  const std::optional<double>& mean_seconds() const { return mean_seconds_; }

 private:
  std::optional<double> mean_seconds_;
  int overs_ = 0;
  EventLoop::Time last_over_;
};

/// A slot's share of a device.
struct SlotShare {
  std::int64_t granted_mib = 0;            // when the slot was acquired
  bool all = false;                        // this was all that the device had
  bool whole = false;                      // no other worker may share the device
  std::optional<std::size_t> intended;     // the trial for which the slot was acquired
  std::optional<std::int64_t> to_reserve;  // at the next tick, because the device was busy
};

/// Why a slot gets no worker or trials.
struct SlotHealth {
  bool broken = false;         // disabled after three failed launches
  bool retired = false;        // released as soon as its worker is gone
  bool barred = false;         // takes no new trial (DeviceGuard)
  int launch_failures = 0;     // in a row
  int taken_away = 0;          // workers in a row taken away before they began a trial
  EventLoop::Time not_before;  // earliest time of the next launch
};

/// Which workers a slot has.
struct SlotKind {
  bool is_job = false;     // jobs of a queue
  bool takes_one = false;  // each takes one attempt
  bool ahead = false;      // a job takes attempts before it has begun
};

/// The right to run one worker at a time, with this worker, its line of attempts, and ended workers
/// that are not concluded yet.
class WorkerSlot : public WorkerHolder {
 public:
  WorkerSlot(std::string slot_name, std::string device_uuid, EventLoop::Time now,
             SlotKind kind = {}, std::int64_t gpus_of_slot = 1)
      : WorkerHolder(std::move(slot_name)),
        gpus(gpus_of_slot),
        device(std::move(device_uuid)),
        acquired(now),
        pace(now),
        kind_(kind) {}

  /// True if the worker can be given attempts: a job that has begun, or one that the queue has
  /// accepted.
  bool takes_attempts() const;

  /// If the worker has ended, moves its end and its attempts to `ended`, which leaves the slot
  /// empty. `retire`: also marks the slot to be released, because a new worker would start with no
  /// memory.
  void collect_end(bool retire);

  /// Gives a prepared attempt to the worker.
  void give(LiveAttempt& live, EventLoop::Time now);
  /// True if the worker is a job that should start now: the slot has none, and nothing forbids one.
  bool wants_job(EventLoop::Time now) const;
  /// True if the queue would end the worker before a trial of the usual length was over.
  bool ends_too_soon(EventLoop::Time now) const;
  /// True if more trials may be claimed for the slot.
  bool takes_claims(const Schedule& schedule, EventLoop::Time now) const;
  std::size_t line() const { return given.size() + ready.size(); }
  bool all_ends_clean() const;
  /// The ended worker that had `live`.
  const EndedWorker& ended_with(const LiveAttempt& live) const;
  EndedWorker& ended_with(const LiveAttempt& live);

  const std::int64_t gpus;   // of its trials (ScheduledTrial::gpus), also where it has none
  const std::string device;  // SlotDevice::uuid; empty: not distinguishable
  const EventLoop::Time acquired;
  std::deque<LiveAttempt*> given;  // attempts that the worker has, in this order
  std::deque<LiveAttempt*> ready;  // attempts that are claimed but not given to it yet
  std::vector<EndedWorker> ended;  // to be concluded in the next transaction
  std::string group;               // of the last trial chosen
  Served served;                   // by the present worker
  SlotHealth health;
  Pace pace;
  SlotShare share;

 private:
  const SlotKind kind_;
};

/// The slots of a run, by name.
class SlotTable {
 public:
  /// `ahead`: jobs of a queue take attempts before they have begun. `most_in_gang`: trials that a
  /// worker gets together.
  SlotTable(Launcher& launcher, EventLoop& loop, bool ahead, std::int64_t most_in_gang)
      : launcher_(launcher),
        loop_(loop),
        ahead_(ahead && launcher.queue() != nullptr),
        most_in_gang_(static_cast<std::size_t>(most_in_gang)) {}

  WorkerSlot& add(const std::string& name, std::int64_t gpus = 1);
  WorkerSlot& at(const std::string& name) { return slots_.at(name); }
  WorkerSlot* find(const std::string& name);
  /// Releases the slot in the launcher.
  void release(const std::string& name);
  void release_all();
  /// Drops all of them, with their workers.
  void clear() { slots_.clear(); }

  /// The number of attempts that a slot's worker may have in line, so that it never waits for a
  /// commit; 1 if trials are long. Of jobs that take attempts ahead: an equal part of all. If
  /// workers train gangs: a gang, and no more until all of it is over.
  std::size_t line_length(const WorkerSlot& slot, const Schedule& schedule) const;

  /// Directs the worker's output to the attempt at the front of its line, and starts that attempt's
  /// clock, unless it has begun already, in a gang.
  void front_changed(WorkerSlot& slot);
  /// Tells a launcher of shared devices what the trial at the front of the line has reported.
  void report_front(const WorkerSlot& slot);

  std::map<std::string, WorkerSlot>& all() { return slots_; }
  const std::map<std::string, WorkerSlot>& all() const { return slots_; }
  std::int64_t size() const { return static_cast<std::int64_t>(slots_.size()); }
  bool empty() const { return slots_.empty(); }
  template <typename Predicate>
  bool any(const Predicate& predicate) const {
    for (const auto& [name, slot] : slots_) {
      if (predicate(slot)) return true;
    }
    return false;
  }

 private:
  std::size_t equal_part(const Schedule& schedule, std::int64_t gpus) const;

  Launcher& launcher_;
  EventLoop& loop_;
  const bool ahead_;
  const std::size_t most_in_gang_;
  std::map<std::string, WorkerSlot> slots_;
};

}  // namespace petlab::orchestrator
