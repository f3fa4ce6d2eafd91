#pragma once

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "orchestrator/running/event_delivery.h"
#include "orchestrator/running/run.h"

namespace petlab::orchestrator {

/// The bytes that this user can still write on the disk with the folder; absent if unknown.
std::optional<std::uintmax_t> free_bytes(const std::filesystem::path& folder);

/// A user's command that a run starts for each event (docs/guides/events.md).
struct EventHookOptions {
  EventCommand command;
  std::filesystem::path database;  // absolute; for the command
  std::filesystem::path runs;      // absolute
  std::optional<std::int64_t> retries;
  /// Replaced in tests.
  std::optional<std::uintmax_t> (*free_bytes)(const std::filesystem::path& folder) =
      orchestrator::free_bytes;
  std::chrono::milliseconds disk_interval = std::chrono::minutes(1);
};

/// Delivers each event of a run at least once, in order and in the background. Events and their ids
/// are derived from the database. A file in the runs folder records the ids of delivered events;
/// all others are delivered by this run or a later one. Events from before the first run with a
/// command count as delivered. Low disks are not in the database: each run reports one that it
/// finds, once until enough space is free.
///
/// Forwards everything that it observes to `observer`. Use it on the loop's thread.
class EventHook final : public RunObserver {
 public:
  /// `sweep` must be recorded in the store. All references must outlive this object. Throws if the
  /// file of delivered events cannot be read or created.
  EventHook(boost::asio::io_context& io, const results::Store& store, const sweeps::Sweep& sweep,
            EventHookOptions options, RunObserver& observer);

  void status(const RunStatus& status) override;
  void trial_over(const std::string& trial_id, sweeps::TrialState state, const std::string& reason,
                  const std::string& last_lines) override;
  void note(const std::string& line) override { observer_.note(line); }
  void resized() override { observer_.resized(); }
  void settled(const std::string& trial_id) override { changed_.push_back(trial_id); }

  /// To be called after the run: delivers the remaining events, `sweep_done` last. Waits for the
  /// command until the limit or stop_waiting(), and notes how many events are left for the next
  /// run.
  void finish(EventLoop& loop);
  void stop_waiting() { waiting_ = false; }

 private:
  void each_trial(const std::vector<std::string>& ids,
                  const std::function<void(const results::TrialFacts&)>& take) const;
  void each_event_of(
      const results::TrialFacts& facts,
      const std::function<void(std::string_view, const results::AttemptFacts&)>& take) const;
  void start_from_here();
  void read_delivered();
  void look(std::size_t most);
  void look_at_disks();
  void add_low_disk(const std::filesystem::path& folder, std::uintmax_t free);
  void add_sweep_done();
  void add(std::string_view event, const results::AttemptFacts& attempt);
  void keep_mark(const std::string& id);

  const results::Store& store_;
  const sweeps::Sweep& sweep_;
  const EventHookOptions options_;
  RunObserver& observer_;
  const std::filesystem::path marks_;      // the file of delivered events
  std::vector<std::string> changed_;       // trials to check for new events
  std::unordered_set<std::string> known_;  // ids: delivered, queued or left for the next run
  bool waiting_ = true;                    // finish() waits
  bool marks_fail_ = false;                // the last mark could not be written
  std::chrono::steady_clock::time_point next_disks_;  // when to look at the disks again
  std::map<std::filesystem::path, bool> low_disks_;   // whether a folder's disk was low
  EventDelivery delivery_;
};

}  // namespace petlab::orchestrator
