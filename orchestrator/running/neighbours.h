#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "orchestrator/host/lock_file.h"
#include "orchestrator/launching/launcher.h"
#include "orchestrator/planning/fair_turns.h"
#include "orchestrator/running/event_loop.h"
#include "orchestrator/running/run_context.h"
#include "orchestrator/running/run_state.h"

namespace petlab::orchestrator {

/// Shares the slots of this host fairly with the other runs there (planning/fair_turns.h). Each run
/// announces its needs in a file in the folder of the slots' locks, which it keeps locked and
/// renews every second. The file of a run that has died or is suspended does not count.
class Neighbours {
 public:
  /// `places`: of the launcher; absent: it shares no slots with other runs, and nothing happens.
  Neighbours(RunContext& context, RunState& state, std::optional<SharedPlaces> places);
  ~Neighbours();
  Neighbours(const Neighbours&) = delete;
  Neighbours& operator=(const Neighbours&) = delete;

  /// Announces this run's needs if they have changed, and every second. `wants`: the further slots
  /// that it has work for, in GPUs if they have some; 0 if it starts no more trials.
  void announce(std::int64_t wants);
  /// True if no other run shares the slots.
  bool alone() const { return others_.empty(); }
  /// False if another run should get the next free slot.
  bool may_take_slot();
  /// Retires slots that are about to take new trials, as far as other runs should have them: they
  /// are released once their last trial is over.
  void yield_slots();
  /// Names the run that goes first; empty if there is none.
  std::string why_no_slot() const;

 private:
  /// A slot that was retired for another run.
  struct Yielded {
    std::string slot;
    std::string to;  // the other run's file
    EventLoop::Time at;
    std::int64_t gpus = 1;
  };
  /// What the file has.
  struct Announced {
    RunNeeds needs;
    EventLoop::Time at;
  };
  bool join();
  void remove_dead();
  void read_others();
  std::vector<RunNeeds> others_after_yields(EventLoop::Time now);

  RunContext& context_;
  RunState& state_;
  std::optional<SharedPlaces> places_;
  std::optional<LockFile> file_;
  RunNeeds mine_;
  Announced announced_;
  EventLoop::Time served_at_;  // until when mine_.served counts
  std::vector<RunNeeds> others_;
  std::vector<std::string> files_;  // theirs
  std::vector<Yielded> yielded_;
  EventLoop::Time read_at_;
  std::optional<EventLoop::Time> defers_since_;  // when it last tried all the same
};

}  // namespace petlab::orchestrator
