#include "results/trial_state.h"

#include "tests/support/catch.h"

namespace petlab::results {
namespace {

AttemptFacts attempt(std::int64_t number, Outcome outcome, const std::string& sweep = "s") {
  AttemptFacts facts;
  facts.attempt.number = number;
  facts.begun.sweep = sweep;
  facts.outcome = outcome;
  return facts;
}

TrialFacts trial(std::vector<AttemptFacts> attempts) {
  TrialFacts facts;
  facts.known = true;
  for (const AttemptFacts& one : attempts) {
    if (one.outcome == Outcome::finished && !facts.result_attempt) {
      facts.result_attempt = one.attempt.number;
    }
  }
  facts.attempts = std::move(attempts);
  return facts;
}

std::string state(const TrialFacts& facts, bool alive = true, bool outdated = false) {
  StateContext context;
  context.sweep = "s";
  context.alive = [=](const AttemptFacts&) { return alive; };
  context.outdated = [=](const AttemptFacts&) { return outdated; };
  return std::string(to_string(state_of(facts, context).state));
}

TEST_CASE("A trial's state follows from its attempts, the user's decisions and later changes",
          "[results]") {
  CHECK(state(trial({})) == "new");
  TrialFacts taken_out = trial({});
  taken_out.cancelled = true;
  CHECK(state(taken_out) == "cancelled");
  const TrialFacts open = trial({attempt(1, Outcome::open)});
  CHECK(state(open) == "running");
  CHECK(state(open, false) == "interrupted");
  CHECK(state(trial({attempt(1, Outcome::finished)})) == "done");
  CHECK(state(trial({attempt(1, Outcome::finished, "other")})) == "cached");
  // The sweep of the attempt with the result decides, whichever sweep has the last attempt.
  CHECK(state(trial({attempt(1, Outcome::finished), attempt(2, Outcome::cancelled, "other")})) ==
        "done");
  CHECK(state(trial({attempt(1, Outcome::finished, "other"), attempt(2, Outcome::cancelled)})) ==
        "cached");
  // The first attempt was given up, and its worker finished it after all.
  CHECK(state(trial({attempt(1, Outcome::finished), attempt(2, Outcome::open)})) == "running");
  CHECK(state(trial({attempt(1, Outcome::finished), attempt(2, Outcome::open)}), false) == "done");
  CHECK(state(trial({attempt(1, Outcome::finished)}), true, true) == "stale");
  CHECK(state(trial({attempt(1, Outcome::failed)})) == "failed");
  CHECK(state(trial({attempt(1, Outcome::crashed)})) == "interrupted");
  CHECK(state(trial({attempt(1, Outcome::crashed), attempt(2, Outcome::crashed),
                     attempt(3, Outcome::stalled)})) == "failed");
  taken_out = trial({attempt(1, Outcome::crashed)});
  taken_out.cancelled = true;
  CHECK(state(taken_out) == "cancelled");
}

TEST_CASE("A decision to retry invalidates only an outdated result", "[results]") {
  TrialFacts facts = trial({attempt(1, Outcome::finished)});
  facts.retried_after = 1;
  CHECK(state(facts) == "done");
  CHECK(state(facts, true, true) == "interrupted");
  facts.attempts.push_back(attempt(2, Outcome::open));
  CHECK(state(facts, true, true) == "running");
  CHECK(state(facts, false, true) == "interrupted");
  facts.retried_after = 0;
  CHECK(state(facts, false, true) == "stale");
}

}  // namespace
}  // namespace petlab::results
