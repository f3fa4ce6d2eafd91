#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "base/child.h"
#include "orchestrator/running/run.h"

namespace petlab::orchestrator {

/// A user's command that a run starts for each event (docs/guides/events.md).
struct EventHookOptions {
  std::string command;             // for /bin/sh
  std::filesystem::path database;  // absolute; for the command
  std::filesystem::path runs;      // absolute
  std::optional<std::int64_t> retries;
  /// The command is killed after this, and a run that is over waits this long for it.
  std::chrono::milliseconds limit = std::chrono::seconds(10);
  std::chrono::milliseconds retry_delay = std::chrono::seconds(1);  // doubles
};

/// Delivers a run's events at least once, one after the other, in the background. An event follows
/// from the database, and so does its id. Ids of delivered events are in a file of the runs folder;
/// events without a line there are delivered by this run or a later one. What happened before the
/// first run with a command counts as delivered.
///
/// Passes everything that it observes on to `observer`. Use it on the loop's thread.
class EventHook final : public RunObserver {
 public:
  /// `sweep` must be recorded in the store. All references must outlive it. Throws where the file
  /// of delivered events cannot be read or created.
  EventHook(boost::asio::io_context& io, const results::Store& store, const sweeps::Sweep& sweep,
            EventHookOptions options, RunObserver& observer);

  void status(const RunStatus& status) override;
  void trial_over(const std::string& trial_id, sweeps::TrialState state, const std::string& reason,
                  const std::string& last_lines) override;
  void note(const std::string& line) override { observer_.note(line); }
  void resized() override { observer_.resized(); }
  void settled(const std::string& trial_id) override { changed_.push_back(trial_id); }

  /// After the run: delivers what is left, `sweep_done` last. Waits for the command until the limit
  /// or stop_waiting(), and notes how many events are left for the next run.
  void finish(EventLoop& loop);
  void stop_waiting() { waiting_ = false; }

 private:
  struct Event {
    std::string id;
    std::string about;  // "trial_failed of 3f2a9c01"
    std::string json;
  };

  void each_trial(const std::vector<std::string>& ids,
                  const std::function<void(const results::TrialFacts&)>& take) const;
  void start_from_here();
  void read_delivered();
  void look(std::size_t most);
  void add_sweep_done();
  void add(std::string_view event, const results::AttemptFacts& attempt);
  void deliver_next();
  void answered(const base::ChildAnswer& answer);
  void keep_mark(const std::string& id);
  void leave(const std::string& why);

  const results::Store& store_;
  const sweeps::Sweep& sweep_;
  const EventHookOptions options_;
  RunObserver& observer_;
  const std::filesystem::path marks_;      // the file of delivered events
  std::vector<std::string> changed_;       // trials whose events are to be looked for
  std::unordered_set<std::string> known_;  // ids: delivered, queued or left for the next run
  std::deque<Event> queue_;                // the first is being delivered
  bool busy_ = false;                      // with the first, or waiting to try it again
  bool waiting_ = true;                    // finish() waits
  bool failing_ = false;                   // the last event was left
  bool marks_fail_ = false;                // the last mark could not be written
  int tries_ = 0;                          // of the first
  std::int64_t left_ = 0;                  // events for the next run
  boost::asio::steady_timer retry_;
  base::Children children_;
};

}  // namespace petlab::orchestrator
