#pragma once

#include <cstdint>
#include <filesystem>
#include <list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "orchestrator/planning/blame.h"
#include "orchestrator/records/ingest.h"
#include "orchestrator/running/best_metric.h"
#include "orchestrator/running/event_loop.h"
#include "orchestrator/running/event_watch.h"
#include "protocol/trial_directory.h"
#include "results/attempt.h"

namespace petlab::orchestrator {

/// Where an attempt is that this run has claimed.
enum class AttemptState {
  claimed,   ///< in the database; it has no directory yet
  vanished,  ///< the checkpoint that it was to go on from is there no more: the claim is taken back
  prepared,  ///< its directory is made
  given,     ///< a worker has it
  begun,     ///< that worker has said that it has begun
  over,      ///< the worker said so, or its end is recorded
};

/// The table of legal changes:
///   claimed  -> prepared, vanished
///   prepared -> given, over (nobody is to begin it any more)
///   given    -> begun, over
///   begun    -> over
/// One of a dead orchestrator's jobs enters as given or begun.
bool may_follow(AttemptState from, AttemptState to);

/// What an attempt's worker has reported, as far as people and limits want to know it.
struct Reported {
  explicit Reported(BestMetric metric) : best(std::move(metric)) {}

  EventLoop::Time heard;  // of its last event
  std::optional<protocol::Progress> progress;
  EventLoop::Time progress_at;  // of the last progress
  EventLoop::Time started_at;   // it said that it has begun
  std::int64_t first_step = 0;  // before the first that this attempt made
  BestMetric best;
  bool checkpointed = false;
  double device_memory_mib = 0;  // the most that was reported
  std::int64_t grew_at = 0;      // step of the last report of more
  bool settled = false;          // it has needed as much memory as it will
  bool told_silent = false;      // the user was told that it says nothing
};

/// Takes over what the worker says of its memory; true where that is more than before.
bool note_memory(Reported& reported, const IngestUpdate& update);

/// An attempt that this run has claimed and that is not over.
class LiveAttempt {
 public:
  LiveAttempt(protocol::TrialDirectory where, results::AttemptRef its_attempt, BestMetric best,
              AttemptState state)
      : directory(std::move(where)),
        attempt(std::move(its_attempt)),
        reported(std::move(best)),
        state_(state) {}

  AttemptState state() const { return state_; }
  /// Throws std::logic_error where the table has no such change.
  void become(AttemptState state);
  /// A worker has it, or had it.
  bool is_with_worker() const {
    return state_ == AttemptState::given || state_ == AttemptState::begun;
  }
  bool is_over() const { return state_ == AttemptState::over; }

  const protocol::TrialDirectory directory;
  const results::AttemptRef attempt;
  protocol::AttemptBegun begun;
  results::Launch launch;
  std::size_t trial = 0;
  std::string slot;
  std::filesystem::path resume_from;  // the checkpoint; empty: it begins anew
  bool worker_ended = false;          // the one that had it
  Verdict verdict = Verdict::none;
  EventLoop::Time began;  // given, or at the front of its worker's line
  Reported reported;

 private:
  AttemptState state_;
};

/// All attempts that this run has claimed and that are not over, and which of them have news: lines
/// in their events.jsonl that were not read yet, perhaps.
class LiveAttempts {
 public:
  explicit LiveAttempts(EventLoop& loop);

  /// Its address stays until remove().
  LiveAttempt& add(protocol::TrialDirectory directory, results::AttemptRef attempt, BestMetric best,
                   AttemptState state);
  /// From now on it has news whenever its worker writes. Its directory must be there.
  void watch(const LiveAttempt& live);
  void remove(const LiveAttempt& live);

  void mark_news(const LiveAttempt& live);
  void unmark_news(const LiveAttempt& live) { news_.erase(&live); }
  bool has_news(const LiveAttempt& live) const { return news_.contains(&live); }
  bool any_news() const { return !news_.empty(); }
  /// Those with news, which they have no more.
  std::vector<LiveAttempt*> take_news();

  /// A worker has it now, which the database does not know yet.
  void note_launch(const LiveAttempt& live);
  bool any_launched() const { return !launched_.empty(); }
  /// Those noted, in their order.
  std::vector<const LiveAttempt*> take_launched() { return std::exchange(launched_, {}); }

  bool empty() const { return entries_.empty(); }
  std::list<LiveAttempt>& all() { return attempts_; }

 private:
  struct Entry {
    std::list<LiveAttempt>::iterator place;
    int watch = -1;
  };
  std::list<LiveAttempt> attempts_;
  std::map<const LiveAttempt*, Entry> entries_;
  std::map<int, const LiveAttempt*> by_watch_;
  std::set<const LiveAttempt*> news_;
  std::vector<const LiveAttempt*> launched_;
  EventWatch watch_;
};

}  // namespace petlab::orchestrator
