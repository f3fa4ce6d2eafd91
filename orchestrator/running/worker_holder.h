#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "orchestrator/launching/launcher.h"
#include "orchestrator/running/event_loop.h"

namespace petlab::orchestrator {

/// The state of a slot, by its worker.
enum class SlotState {
  empty,     ///< there is no worker
  serving,   ///< the worker takes attempts
  closing,   ///< no more attempts follow: it ends after those it has
  stopping,  ///< it was asked to end, or killed
  lost,      ///< it was killed but does not end, and is no longer waited for
  ended,     ///< its end was reported, but WorkerSlot::collect_end() was not called yet
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

/// Holds the worker of a slot, if it has one, and ends it.
class WorkerHolder {
 public:
  explicit WorkerHolder(std::string slot_name) : name(std::move(slot_name)) {}

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
  /// What the worker runs (protocol::Launch::code).
  const std::string& code() const { return code_; }

  /// Takes a worker that was just started or adopted. `code` is what it runs
  /// (protocol::Launch::code).
  void serve(std::unique_ptr<Worker> worker, std::string code);
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
  /// Kills a worker that was asked to stop longer than `grace` ago, or one that was closed and is
  /// `idle`: it has nothing left.
  void enforce(EventLoop::Time now, EventLoop::Clock::duration grace, bool idle);
  /// True if the worker was killed so long ago that it waits in the kernel and may never end.
  bool outlives_kill(EventLoop::Time now) const;
  /// Gives up on such a worker: it is no longer waited for, and the slot stays closed until it ends
  /// after all. The caller must remove its attempts from the slot.
  void give_up() { become(SlotState::lost); }
  /// Destroys the worker, at the end of the run.
  void drop_worker();

  const std::string name;  // of the slot

 protected:
  /// A worker that has ended.
  struct End {
    WorkerEnd how;
    std::string job;           // Launch::job
    bool was_serving = false;  // nobody had asked it to end
    bool was_stopped = false;  // by this run
  };
  /// Leaves the slot empty. Invariant: the worker has ended.
  End take_end();

 private:
  void become(SlotState state);

  SlotState state_ = SlotState::empty;
  std::unique_ptr<Worker> worker_;
  std::string code_;
  End end_;                                   // if the worker has ended
  EventLoop::Time asked_at_;                  // closing or stopping since
  std::optional<EventLoop::Time> killed_at_;  // for the first time
};

}  // namespace petlab::orchestrator
