#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "orchestrator/launching/launcher.h"
#include "orchestrator/planning/schedule.h"
#include "orchestrator/running/event_loop.h"
#include "orchestrator/running/live_attempts.h"

namespace petlab::orchestrator {

/// Where a slot is, by its worker.
enum class SlotState {
  empty,     ///< it has none
  serving,   ///< it takes what it is given
  closing,   ///< no more will come: it ends after what it has
  stopping,  ///< it was asked to end, or killed
  lost,      ///< it was killed, does not end, and is waited for no longer
  ended,     ///< its end was reported and is not set aside yet
};

/// The table of legal changes:
///   empty    -> serving
///   serving  -> closing, stopping, ended
///   closing  -> stopping, ended
///   stopping -> lost, ended
///   lost     -> ended
///   ended    -> empty
bool may_follow(SlotState from, SlotState to);

/// A worker that has ended, with what it had not finished as far as was read by then.
struct EndedWorker {
  std::deque<LiveAttempt*> given;
  WorkerEnd end;
  bool any_begun = false;
  bool asked_to_stop = false;
  /// The next trial can begin before this end is concluded: nothing in it can change what is to
  /// run.
  bool is_clean() const;
};

/// How fast a slot's trials are over.
class Pace {
 public:
  explicit Pace(EventLoop::Time now) : last_over_(now) {}
  void one_is_over() { ++overs_; }
  /// Takes those into the mean that were over since the last call.
  void learn(EventLoop::Time now);
  /// Of a trial, with its overhead; absent: none is over yet.
  const std::optional<double>& mean_seconds() const { return mean_seconds_; }

 private:
  std::optional<double> mean_seconds_;
  int overs_ = 0;
  EventLoop::Time last_over_;
};

/// What a slot is on a device that several share.
struct SlotShare {
  std::int64_t granted_mib = 0;            // when the slot was taken
  bool all = false;                        // that was all that the device had
  bool whole = false;                      // nobody else may join
  std::optional<std::size_t> intended;     // the trial for which the slot was taken
  std::optional<std::int64_t> to_reserve;  // at the next tick: it could not be now
};

/// The right to one worker at a time, with that worker, its line of attempts, and those that have
/// ended here and are not concluded.
class WorkerSlot {
 public:
  WorkerSlot(std::string its_name, std::string its_device, EventLoop::Time now)
      : name(std::move(its_name)), device(std::move(its_device)), pace(now) {}

  SlotState state() const { return state_; }
  bool has_worker() const { return worker_ != nullptr; }
  /// One that has not ended, and whose end is waited for.
  bool has_live_worker() const {
    return has_worker() && state_ != SlotState::ended && state_ != SlotState::lost;
  }
  bool is_lost() const { return state_ == SlotState::lost; }
  Worker& worker() const { return *worker_; }
  /// Where it waits in a queue or is suspended.
  bool waits() const { return has_worker() && worker_->waits(); }

  /// Takes a worker that was just started or adopted.
  void serve(std::unique_ptr<Worker> worker);
  /// For Launcher::start().
  void report_end(WorkerEnd end);
  /// No more will come. `now`: the grace begins when it has nothing left.
  void close(EventLoop::Time now);
  /// Asks the worker to write a checkpoint and end; nothing where it was asked, or has ended.
  void ask_to_stop(EventLoop::Time now);
  /// Ends the worker at once.
  void kill(EventLoop::Time now);
  /// Kills a worker that was asked to end longer than `grace` ago.
  void enforce(EventLoop::Time now, EventLoop::Clock::duration grace);
  /// True if the worker was killed so long ago that it waits in the kernel and may never end.
  bool outlives_kill(EventLoop::Time now) const;
  /// Gives up on such a worker: nobody waits for it, and the slot stays closed until it ends after
  /// all. What it was given is for the caller to take out.
  void give_up() { become(SlotState::lost); }
  /// Lets go of the worker at the end of the run.
  void drop_worker() { worker_.reset(); }
  /// Where the worker has ended: its end and what it had go to `ended`, and the slot is empty.
  /// `retire`: a new worker would begin with nothing, so the slot is to be given back.
  void set_end_aside(bool retire);

  /// True where more may be claimed for it.
  bool takes_claims(const Schedule& schedule, EventLoop::Time now) const;
  std::size_t line() const { return given.size() + ready.size(); }
  bool all_ends_clean() const;
  /// The ended worker that had `live`.
  const EndedWorker& ended_with(const LiveAttempt& live) const;
  EndedWorker& ended_with(const LiveAttempt& live);

  const std::string name;
  const std::string device;        // SlotDevice::uuid; empty: none that could be told apart
  std::deque<LiveAttempt*> given;  // the worker has them, in this order
  std::deque<LiveAttempt*> ready;  // claimed, for a worker that takes one at a time
  std::vector<EndedWorker> ended;  // to be concluded in the next transaction
  std::string group;               // of the last trial given
  bool any_begun = false;          // of all that the worker was ever given
  bool broken = false;             // stopped after three launches that failed
  bool retired = false;            // given back as soon as its worker is gone
  bool barred = false;             // takes no new trial (DeviceGuard)
  int launch_failures = 0;         // in a row
  int taken_away = 0;              // in a row, before it began a trial
  EventLoop::Time not_before;      // of the next launch
  Pace pace;
  SlotShare share;

 private:
  void become(SlotState state);

  SlotState state_ = SlotState::empty;
  std::unique_ptr<Worker> worker_;
  WorkerEnd end_;                             // where it has ended
  bool was_stopped_ = false;                  // before that
  EventLoop::Time asked_at_;                  // closing or stopping since
  std::optional<EventLoop::Time> killed_at_;  // for the first time
};

/// The slots that a run has, by name.
class SlotTable {
 public:
  SlotTable(Launcher& launcher, EventLoop& loop) : launcher_(launcher), loop_(loop) {}

  WorkerSlot& add(const std::string& name);
  WorkerSlot& at(const std::string& name) { return slots_.at(name); }
  WorkerSlot* find(const std::string& name);
  /// Gives it back to the launcher.
  void release(const std::string& name);
  void release_all();
  /// Drops all of them, with their workers.
  void clear() { slots_.clear(); }

  /// How many attempts a slot's worker may have ahead, so that it never waits for a commit; one
  /// where trials are long, or jobs.
  std::size_t line_length(const WorkerSlot& slot, const Schedule& schedule) const;

  /// Gives what is next in the worker's line the worker's output and a fresh clock.
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
  Launcher& launcher_;
  EventLoop& loop_;
  std::map<std::string, WorkerSlot> slots_;
};

}  // namespace petlab::orchestrator
