#pragma once

#include <cstdint>
#include <filesystem>
#include <list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
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

/// The state of an attempt that this run has claimed.
enum class AttemptState {
  claimed,   ///< recorded in the database; it has no directory yet
  vanished,  ///< the checkpoint to resume from no longer exists: the claim is withdrawn
  prepared,  ///< its directory exists
  given,     ///< a worker has it
  begun,     ///< the worker has reported that it has begun
  over,      ///< the worker has reported its end, or its end is recorded
};

/// The table of legal changes:
///   claimed  -> prepared, vanished
///   prepared -> given, over (no worker is to begin it any more)
///   given    -> begun, over
///   begun    -> over
/// A job adopted from a dead orchestrator enters as given or begun.
bool may_follow(AttemptState from, AttemptState to);
std::string_view to_string(AttemptState state);

/// What an attempt's worker has reported, for the live view and the limits.
struct Reported {
  explicit Reported(BestMetric metric) : best(std::move(metric)) {}

  EventLoop::Time heard;  // time of its last event
  std::optional<protocol::Progress> progress;
  EventLoop::Time progress_at;  // time of the last progress
  EventLoop::Time started_at;   // when it reported that it has begun
  std::int64_t first_step = 0;  // the step from which this attempt continues
  BestMetric best;
  bool checkpointed = false;
  double device_memory_mib = 0;  // the highest value reported
  std::int64_t grew_at = 0;      // step at which it last grew
  bool settled = false;          // its memory is not expected to grow further
  bool silence_noted = false;    // the user was notified of its silence
};

/// Updates the memory that the worker reports; true if it has grown.
bool note_memory(Reported& reported, const IngestUpdate& update);

/// An attempt that this run has claimed and that is not over.
class LiveAttempt {
 public:
  LiveAttempt(protocol::TrialDirectory where, results::AttemptRef claimed, BestMetric best,
              AttemptState state)
      : directory(std::move(where)),
        attempt(std::move(claimed)),
        reported(std::move(best)),
        state_(state) {}

  AttemptState state() const { return state_; }
  /// Invariant: the table allows the change.
  void become(AttemptState state);
  /// True once a worker was given the attempt, until it is over.
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
  bool worker_ended = false;  // the worker that had it has ended
  bool in_gang = false;       // its worker was given others together with it
  Verdict verdict = Verdict::none;
  std::optional<EventLoop::Time> asked_to_stop;  // alone, since then (TrialDirectory::stop)
  EventLoop::Time began;  // when it reached the front of its worker's line, or began with a gang
  Reported reported;

 private:
  AttemptState state_;
};

/// All claimed attempts of this run that are not over. Tracks which of them have news: lines in
/// their events.jsonl that may be unread.
class LiveAttempts {
 public:
  explicit LiveAttempts(EventLoop& loop);

  /// The address of the returned attempt is valid until remove().
  LiveAttempt& add(protocol::TrialDirectory directory, results::AttemptRef attempt, BestMetric best,
                   AttemptState state);
  /// Marks the attempt as having news whenever its worker writes. Its directory must exist.
  void watch(const LiveAttempt& live);
  void remove(const LiveAttempt& live);
  LiveAttempt& at(const results::AttemptRef& attempt) { return *entries_.at(attempt.key).place; }

  void mark_news(const LiveAttempt& live);
  void unmark_news(const LiveAttempt& live) { news_.erase(&live); }
  bool has_news(const LiveAttempt& live) const { return news_.contains(&live); }
  bool any_news() const { return !news_.empty(); }
  /// Returns the attempts with news and removes the marks.
  std::vector<LiveAttempt*> take_news();

  /// Notes that a worker has the attempt, which is not in the database yet.
  void note_launch(const LiveAttempt& live);
  bool any_launched() const { return !launched_.empty(); }
  /// Returns the noted attempts, in their order, and forgets them.
  std::vector<const LiveAttempt*> take_launched() { return std::exchange(launched_, {}); }

  bool empty() const { return entries_.empty(); }
  std::list<LiveAttempt>& all() { return attempts_; }

 private:
  struct Entry {
    std::list<LiveAttempt>::iterator place;
    int watch = -1;
  };
  std::list<LiveAttempt> attempts_;
  std::map<std::int64_t, Entry> entries_;  // by AttemptRef::key
  std::map<int, const LiveAttempt*> by_watch_;
  std::set<const LiveAttempt*> news_;
  std::vector<const LiveAttempt*> launched_;
  EventWatch watch_;
};

}  // namespace petlab::orchestrator
