#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "orchestrator/host/process_identity.h"
#include "orchestrator/records/decide.h"
#include "orchestrator/recovery/evidence.h"
#include "results/store.h"

namespace petlab::orchestrator {

// A user's requests to change trials and runs, also while these are active. A run reads the
// decisions in the database once a second, or its inbox if it holds the database.

/// The only trial whose id begins with `text`. Throws std::invalid_argument if there is none, or
/// several.
std::string find_trial(const results::Reader& reader, const std::filesystem::path& database,
                       const std::string& text);

/// The result of a request to change a trial.
struct DecisionResult {
  bool applied = false;  ///< False: it would change nothing; `text` gives the reason.
  std::string text;      ///< One line for people, without the trial id.
};

/// Cancels a trial; its orchestrator stops a running attempt. Not applied if the trial has a
/// result. `runs` is absolute here and below.
DecisionResult cancel_trial(const DecisionWriter& to, const std::filesystem::path& runs,
                            const std::string& trial_id, const HostIdentity& here, double time);

/// Lets a trial run again: earlier failures no longer count, and it is no longer cancelled. Not
/// applied if it has a result or is running. `declare_dead`: an attempt on an unreachable host is
/// recorded as lost; one whose lock is held on this machine never is.
DecisionResult retry_trial(const DecisionWriter& to, const std::filesystem::path& runs,
                           const std::string& trial_id, bool declare_dead, const HostIdentity& here,
                           double time);

/// Invalidates the trial's result, so that the next run recomputes it; nothing is deleted. Not
/// applied if it has none.
DecisionResult discard_trial(const DecisionWriter& to, const std::filesystem::path& runs,
                             const std::string& trial_id, const std::string& why, double time);

/// Excludes a trial from reports and answers, or includes it again; it runs like any other. Not
/// applied if it is already excluded for the same reason.
DecisionResult hide_trial(const DecisionWriter& to, const std::filesystem::path& runs,
                          const std::string& trial_id, const std::string& why, double time);
DecisionResult unhide_trial(const DecisionWriter& to, const std::filesystem::path& runs,
                            const std::string& trial_id, double time);

/// An active `petlab run`, as recorded in its lock.
struct RunningOrchestrator {
  std::string owner;
  std::int64_t pid = 0;
  std::string host;
  std::string database;
  std::string sweep;
  bool reachable = false;  // its pid refers to that process here
};
/// Lists the active runs of a runs folder, sorted by owner.
std::vector<RunningOrchestrator> running_orchestrators(const std::filesystem::path& runs,
                                                       const HostIdentity& here);

/// Asks a run to finish its running trials and exit, or, with `now`, to checkpoint and stop.
/// Returns false if it has ended or cannot be reached from here.
bool ask_to_stop(const RunningOrchestrator& orchestrator, bool now);

}  // namespace petlab::orchestrator
