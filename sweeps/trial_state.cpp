#include "sweeps/trial_state.h"

#include <array>
#include <utility>

namespace petlab::sweeps {
namespace {

constexpr std::array<std::pair<TrialState, std::string_view>, 9> kWords{
    {{TrialState::fresh, "new"},
     {TrialState::running, "running"},
     {TrialState::interrupted, "interrupted"},
     {TrialState::done, "done"},
     {TrialState::cached, "cached"},
     {TrialState::stale, "stale"},
     {TrialState::failed, "failed"},
     {TrialState::cancelled, "cancelled"},
     {TrialState::stopped, "stopped early"}}};

}  // namespace

std::string_view to_string(TrialState state) {
  for (const auto& [known, word] : kWords) {
    if (known == state) return word;
  }
  return "";
}

std::optional<TrialState> trial_state_from(std::string_view text) {
  for (const auto& [state, word] : kWords) {
    if (word == text) return state;
  }
  return std::nullopt;
}

}  // namespace petlab::sweeps
