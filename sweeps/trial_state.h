#pragma once

#include <optional>
#include <string_view>

namespace petlab::sweeps {

/// Where a trial of a sweep is (design: "A trial's identity and states").
enum class TrialState {
  fresh,        ///< "new": never tried
  running,      ///< an attempt is alive
  interrupted,  ///< tried, not over, no attempt alive; goes on from its last checkpoint
  done,         ///< finished by this sweep
  cached,       ///< finished by another sweep
  stale,        ///< finished, but the numerics version or the data changed since
  failed,       ///< failed as often as the limit allows
  cancelled,    ///< taken out by the user
};

/// "new", "running", …: the word in every command, report and database.
std::string_view to_string(TrialState state);
/// std::nullopt for any other text.
std::optional<TrialState> trial_state_from(std::string_view text);

}  // namespace petlab::sweeps
