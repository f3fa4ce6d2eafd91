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

namespace petlab::orchestrator {

/// The state of a slot, by its worker.
enum class SlotState {
  empty,     ///< there is no worker
  serving,   ///< the worker takes attempts
  closing,   ///< no more attempts follow: it ends after those it has
  stopping,  ///< it was asked to end, or killed
  lost,      ///< it was killed but does not end, and is no longer waited for
  ended,     ///< its end was reported, but collect_end() was not called yet
};

/// The table of legal changes:
///   empty    -> serving
///   serving  -> closing, stopping, ended
///   closing  -> stopping, ended
///   stopping -> lost, ended
///   lost     -> ended
///   ended    -> empty
bool may_follow(SlotState from, SlotState to);
std::string_view to_string(SlotState state);

/// A worker that has ended, with its attempts that were not known to be over.
struct EndedWorker {
  std::deque<LiveAttempt*> given;
  WorkerEnd end;
  bool any_given = true;
  bool any_begun = false;
  bool any_over = false;
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

/// Which workers a slot has.
struct SlotKind {
  bool is_job = false;     // jobs of a queue
  bool takes_one = false;  // each takes one attempt
  bool ahead = false;      // a job takes attempts before it has begun
};

/// The right to run one worker at a time, with this worker, its line of attempts, and ended workers
/// that are not concluded yet.
class WorkerSlot {
 public:
  WorkerSlot(std::string slot_name, std::string device_uuid, EventLoop::Time now,
             SlotKind kind = {}, std::int64_t gpus_of_slot = 1)
      : name(std::move(slot_name)),
        gpus(gpus_of_slot),
        device(std::move(device_uuid)),
        acquired(now),
        pace(now),
        kind_(kind) {}

  SlotState state() const { return state_; }
  bool has_worker() const { return worker_ != nullptr; }
  /// True if there is a worker that has not ended and is not lost.
  bool has_live_worker() const {
    return has_worker() && state_ != SlotState::ended && state_ != SlotState::lost;
  }
  bool is_lost() const { return state_ == SlotState::lost; }
  Worker& worker() const { return *worker_; }
  /// True while the worker waits in a queue or is suspended.
  bool waits() const { return has_worker() && worker_->waits(); }
  /// True if the worker can be given attempts: a job that has begun, or one that the queue has
  /// accepted.
  bool takes_attempts() const;

  /// Takes a worker that was just started or adopted.
  void serve(std::unique_ptr<Worker> worker);
  /// Records the worker's end. This is the `on_end` of Launcher::start().
  void report_end(WorkerEnd end);
  /// Announces that no more attempts follow. The grace period counts from `now`, but ends only a
  /// worker that has nothing left.
  void close(EventLoop::Time now);
  /// Asks the worker to write a checkpoint and end. Does nothing if it was asked before or has
  /// ended.
  void ask_to_stop(EventLoop::Time now);
  /// Kills the worker.
  void kill(EventLoop::Time now);
  /// Kills a worker that was asked to end longer than `grace` ago.
  void enforce(EventLoop::Time now, EventLoop::Clock::duration grace);
  /// True if the worker was killed so long ago that it waits in the kernel and may never end.
  bool outlives_kill(EventLoop::Time now) const;
  /// Gives up on such a worker: it is no longer waited for, and the slot stays closed until it ends
  /// after all. The caller must remove its attempts from the slot.
  void give_up() { become(SlotState::lost); }
  /// Destroys the worker at the end of the run.
  void drop_worker() { worker_.reset(); }
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

  const std::string name;
  const std::int64_t gpus;   // of its trials (ScheduledTrial::gpus), also where it has none
  const std::string device;  // SlotDevice::uuid; empty: not distinguishable
  const EventLoop::Time acquired;
  std::deque<LiveAttempt*> given;  // attempts that the worker has, in this order
  std::deque<LiveAttempt*> ready;  // attempts that are claimed but not given to it yet
  std::vector<EndedWorker> ended;  // to be concluded in the next transaction
  std::string group;               // of the last trial chosen
  std::string code;                // what its worker runs (protocol::Launch::code)
  bool any_given = false;          // whether the worker was ever given an attempt
  bool any_begun = false;          // of all attempts that the worker was ever given
  bool any_over = false;           // of these
  bool broken = false;             // disabled after three failed launches
  bool retired = false;            // released as soon as its worker is gone
  bool barred = false;             // takes no new trial (DeviceGuard)
  int launch_failures = 0;         // in a row
  int taken_away = 0;              // workers in a row taken away before they began a trial
  EventLoop::Time not_before;      // earliest time of the next launch
  Pace pace;
  SlotShare share;

 private:
  void become(SlotState state);

  const SlotKind kind_;
  SlotState state_ = SlotState::empty;
  std::unique_ptr<Worker> worker_;
  WorkerEnd end_;                             // if the worker has ended
  bool was_stopped_ = false;                  // before it ended
  bool was_serving_ = false;                  // when it ended
  EventLoop::Time asked_at_;                  // closing or stopping since
  std::optional<EventLoop::Time> killed_at_;  // for the first time
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
