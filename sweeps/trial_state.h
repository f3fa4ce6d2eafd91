#pragma once

#include <optional>
#include <string_view>

namespace petlab::sweeps {

/// The state of a trial in a sweep (design: "A trial's identity and states").
enum class TrialState {
  fresh,        ///< "new": no attempt yet
  running,      ///< an attempt is alive
  interrupted,  ///< started but not finished, no attempt alive; resumes from its last checkpoint
  done,         ///< finished in this sweep
  cached,       ///< finished in another sweep
  stale,        ///< finished, but the numerics version or the data changed since
  failed,       ///< reached the limit of failed attempts
  cancelled,    ///< cancelled by the user
  stopped,      ///< "stopped early": by a rule of its sweep, because it lost against others
};

/// The name in all commands, reports and databases: "new", "running", ….
std::string_view to_string(TrialState state);
/// std::nullopt for any other text.
std::optional<TrialState> trial_state_from(std::string_view text);

}  // namespace petlab::sweeps
