#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "orchestrator/host/process_identity.h"
#include "orchestrator/records/decide.h"
#include "orchestrator/recovery/evidence.h"
#include "results/store.h"

namespace petlab::orchestrator {

// What a user does to trials and runs from another terminal, also while they go on. A run looks at
// the decisions in the database once a second, and at its inbox where it holds the database.

/// The one trial whose id begins with `text`. Throws std::invalid_argument where there is none, or
/// several.
std::string find_trial(const results::Reader& reader, const std::filesystem::path& database,
                       const std::string& text);

/// What became of a decision.
struct Decree {
  bool taken = false;  // false: it would change nothing, and `text` says why
  std::string text;    // one line for people, without the trial's id
};

/// Takes a trial out: what runs is stopped by its orchestrator. Not taken where the trial has a
/// result. `runs` is absolute here and below.
Decree cancel_trial(const DecisionWriter& to, const std::filesystem::path& runs,
                    const std::string& trial_id, const HostIdentity& here, double time);

/// Lets a trial be tried again: failures so far no longer count, and it is not cancelled any more.
/// Not taken where it has a result or runs. `declare_dead`: an attempt on another host, of which
/// nothing is known here, is recorded as lost; one whose lock is held on this machine never is.
Decree retry_trial(const DecisionWriter& to, const std::filesystem::path& runs,
                   const std::string& trial_id, bool declare_dead, const HostIdentity& here,
                   double time);

/// The trial's result counts no more, and the next run makes it again; nothing is deleted. Not
/// taken where it has none.
Decree discard_trial(const DecisionWriter& to, const std::filesystem::path& runs,
                     const std::string& trial_id, const std::string& why, double time);

/// Takes a trial out of reports and answers, or back in; it is run like any other. Not taken where
/// it is so already, and for the same reason.
Decree hide_trial(const DecisionWriter& to, const std::filesystem::path& runs,
                  const std::string& trial_id, const std::string& why, double time);
Decree unhide_trial(const DecisionWriter& to, const std::filesystem::path& runs,
                    const std::string& trial_id, double time);

/// A `petlab run` that goes on, as its lock says.
struct RunningOrchestrator {
  std::string owner;
  std::int64_t pid = 0;
  std::string host;
  std::string database;
  std::string sweep;
  bool reachable = false;  // its pid means that process here
};
/// Those of a runs folder, by name.
std::vector<RunningOrchestrator> running_orchestrators(const std::filesystem::path& runs,
                                                       const HostIdentity& here);

/// Asks it to finish the running trials and end; `now`: to checkpoint and stop. False where it is
/// gone or not reachable from here.
bool ask_to_stop(const RunningOrchestrator& orchestrator, bool now);

}  // namespace petlab::orchestrator
