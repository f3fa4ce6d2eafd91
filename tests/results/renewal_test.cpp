#include "results/attempt_events.h"
#include "results/decisions.h"
#include "results/store.h"
#include "results/trial_state.h"
#include "tests/results/helpers.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

namespace petlab::results {
namespace {

using testing::TempDir;
using Lines = std::vector<std::string>;

/// One trial, t1, and operations on it.
struct RenewalFixture {
  TempDir folder;
  std::filesystem::path file = folder.path() / "petlab.db";
  Store store{file};

  RenewalFixture() {
    write([](Batch& b) {
      b.record_sweep({"s", "", "", "", {{"t1", "a"}}}, {{trial_row("t1")}}, 1);
    });
  }
  template <typename Body>
  void write(Body body) {
    Batch batch = store.begin();
    body(batch);
    batch.commit();
  }
  TrialFacts facts() const {
    return store.read().trial_facts(std::vector<std::string>{"t1"}).at(0);
  }
  /// Returns an attempt with number 0 if the claim was refused.
  AttemptRef claim() {
    NewAttempt wanted = request("t1");
    wanted.planned_from = facts().changes;
    Batch batch = store.begin();
    const Claim claim = batch.begin_attempt(wanted);
    batch.commit();
    const auto* attempt = std::get_if<AttemptRef>(&claim);
    return attempt == nullptr ? AttemptRef{0, "t1", 0} : *attempt;
  }
  void finish(const AttemptRef& attempt) {
    write([&](Batch& b) {
      append_losses(b, attempt, 1, 100 * static_cast<double>(attempt.number));
      record_finished(b, attempt, {}, 9);
    });
  }
  Lines counted() const { return rows(file, "SELECT attempt, value FROM results"); }
  sweeps::TrialState state() const {
    StateContext context;
    context.sweep = "s";
    context.alive = [](const AttemptFacts&) { return true; };
    context.outdated = [](const AttemptFacts&) { return false; };
    return state_of(facts(), context).state;
  }
};

}  // namespace

using sweeps::TrialState;

TEST_CASE("A result that is to be rerun counts until the next one is finished", "[results]") {
  RenewalFixture f;
  f.finish(f.claim());
  CHECK(f.claim().number == 0);
  CHECK(f.state() == TrialState::done);
  const std::int64_t before = f.facts().changes;
  f.write([](Batch& b) { renew(b, "t1", {1, false, "", 10}); });
  CHECK(f.facts().changes > before);
  CHECK(f.state() == TrialState::interrupted);
  CHECK(f.counted() == Lines{"1|101.0"});
  const AttemptRef second = f.claim();
  CHECK(second.number == 2);
  CHECK(f.claim().number == 0);
  CHECK(f.state() == TrialState::running);
  // Repeating the decision for the same result changes nothing.
  f.write([](Batch& b) { renew(b, "t1", {1, false, "", 11}); });
  f.finish(second);
  CHECK(f.state() == TrialState::done);
  CHECK(f.counted() == Lines{"2|201.0"});
  CHECK(f.claim().number == 0);
  CHECK(result_decisions(f.store.read(), "t1").renewals ==
        std::vector<Renewal>{{1, false, "", 10}});
}

TEST_CASE("A discarded result no longer counts, and only a new one replaces it", "[results]") {
  RenewalFixture f;
  const AttemptRef first = f.claim();
  f.write([&](Batch& b) { b.record_ending(first, {Outcome::lost, "gone", {}, {}, "", 6}); });
  const AttemptRef second = f.claim();
  f.finish(second);
  f.write([](Batch& b) { renew(b, "t1", {2, true, "wrong data", 10}); });
  CHECK(f.counted().empty());
  CHECK_FALSE(f.facts().result_attempt);
  CHECK(f.state() == TrialState::interrupted);
  // A late result of an earlier attempt is discarded, too.
  f.finish(first);
  CHECK(f.counted().empty());
  CHECK(f.state() == TrialState::interrupted);
  const AttemptRef third = f.claim();
  CHECK(third.number == 3);
  f.finish(third);
  CHECK(f.counted() == Lines{"3|301.0"});
  CHECK(f.state() == TrialState::done);
  CHECK(rows(f.file, "SELECT count(DISTINCT attempt) FROM metrics") == Lines{"3"});
  // The later of two discards decides.
  f.write([](Batch& b) { renew(b, "t1", {3, true, "wrong data again", 11}); });
  CHECK(f.counted().empty());
  CHECK(f.state() == TrialState::interrupted);
  f.finish(f.claim());
  CHECK(f.counted() == Lines{"4|401.0"});
}

TEST_CASE("A decision to rerun a result increases the count that claims are planned from",
          "[results]") {
  RenewalFixture f;
  const AttemptRef first = f.claim();
  f.write([&](Batch& b) { b.record_ending(first, {Outcome::lost, "gone", {}, {}, "", 6}); });
  f.write([](Batch& b) { allow_retry(b, "t1", 1); });
  f.finish(first);
  // The result came after the retry decision, so only the renewal changes anything now.
  const std::int64_t before = f.facts().changes;
  CHECK(f.state() == TrialState::done);
  f.write([](Batch& b) { renew(b, "t1", {1, false, "", 10}); });
  CHECK(f.facts().changes == before + 1);
  CHECK(decided(f.store.read()).at(0).renewed_after == 1);
  CHECK(f.state() == TrialState::interrupted);
}

TEST_CASE("A hidden trial is in no view and in no sweep that is read, and can be shown again",
          "[results]") {
  RenewalFixture f;
  f.finish(f.claim());
  f.write([](Batch& b) { set_hidden(b, "t1", Hiding{"far off", 10}); });
  CHECK(f.counted().empty());
  CHECK(rows(f.file, "SELECT * FROM sweep_results").empty());
  CHECK(rows(f.file, "SELECT value FROM metrics") == Lines{"101.0"});
  std::int64_t members = 0;
  const auto count = [&](const auto&, const auto&, const auto&) { ++members; };
  f.store.read().each_member("s", count);
  CHECK(members == 0);
  CHECK(result_decisions(f.store.read(), "t1").hidden == Hiding{"far off", 10});
  CHECK(f.store.read().outline("s").hidden == 1);
  CHECK(f.state() == TrialState::done);
  f.write([](Batch& b) { set_hidden(b, "t1", std::nullopt); });
  f.store.read().each_member("s", count);
  CHECK(members == 1);
  CHECK(f.counted() == Lines{"1|101.0"});
}

}  // namespace petlab::results
