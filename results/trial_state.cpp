#include "results/trial_state.h"

namespace petlab::results {

using sweeps::TrialState;

StateOfTrial state_of(const TrialFacts& facts, const StateContext& context) {
  if (facts.attempts.empty()) {
    return {facts.cancelled ? TrialState::cancelled : TrialState::fresh, nullptr, false};
  }
  const AttemptFacts* finished = nullptr;
  for (const AttemptFacts& attempt : facts.attempts) {
    if (attempt.attempt.number == facts.result_attempt) finished = &attempt;
  }
  // `--rerun stale` sets retried_after, which invalidates only a stale result. Others stay, because
  // an attempt that was given up may still report its result. `--rerun all` invalidates every
  // result.
  const bool renewed = finished != nullptr && is_to_renew(facts);
  const bool outdated = finished != nullptr && !renewed && context.outdated(*finished);
  const bool to_renew = renewed || (outdated && finished->attempt.number <= facts.retried_after);
  if (to_renew) finished = nullptr;
  const AttemptFacts& last = facts.attempts.back();
  if (last.outcome == Outcome::open && context.alive(last)) {
    return {TrialState::running, nullptr, to_renew};
  }
  if (finished != nullptr) {
    const TrialState state = outdated                                 ? TrialState::stale
                             : finished->begun.sweep == context.sweep ? TrialState::done
                                                                      : TrialState::cached;
    return {state, finished, false};
  }
  if (facts.cancelled) {
    return {facts.stopped_early.empty() ? TrialState::cancelled : TrialState::stopped, nullptr,
            to_renew};
  }
  if (has_failed(facts, context.retries)) return {TrialState::failed, nullptr, to_renew};
  return {TrialState::interrupted, nullptr, to_renew};
}

}  // namespace petlab::results
