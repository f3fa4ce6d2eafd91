#include <fmt/format.h>

#include <chrono>
#include <map>

#include "results/attempt_events.h"
#include "results/decisions.h"
#include "tests/results/helpers.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

namespace petlab::results {
namespace {

using namespace std::chrono_literals;
using testing::TempDir;

/// Sweep s: t1 finished, under two variants; t2 failed; t3 untried; t4 open; t5 cancelled and
/// untried; t6 finished like t1; t7 to be rerun.
struct World {
  TempDir folder;
  std::filesystem::path file = folder.path() / "petlab.db";
  Store store{file};

  World() {
    Batch batch = store.begin();
    std::vector<TrialRow> rows;
    SweepRow sweep{"s", "", "", "", {}};
    for (int trial = 7; trial >= 1; --trial) {
      rows.push_back(trial_row(fmt::format("t{}", trial), static_cast<std::uint64_t>(trial)));
      sweep.members.push_back({rows.back().trial_id, "a"});
    }
    sweep.members.push_back({"t1", "b"});
    batch.record_sweep(sweep, rows, 1);
    const auto started = [&](const std::string& trial) {
      const AttemptRef attempt = batch.record_attempt(request(trial), 1);
      record_started(batch, attempt, {7, "w", "1", R"({"version":"1"})", "b", {{"cola", "d"}}}, 2);
      return attempt;
    };
    for (const char* trial : {"t1", "t6", "t7"}) record_finished(batch, started(trial), {}, 3);
    record_failed(batch, started("t2"), {"no good", "error"}, 3);
    started("t4");
    set_cancelled(batch, "t5", true);
    allow_retry(batch, "t7", 1);
    batch.commit();
  }
};

}  // namespace

TEST_CASE("Each member of a sweep is read once, in its order, with the facts of its trial",
          "[results]") {
  World world;
  const Reader& reader = world.store.read();
  std::vector<std::string> ids;
  std::vector<std::string> members;
  reader.each_member("s", [&](const SweepRow::Member& member, const TrialRow& row,
                              const TrialFacts& facts) {
    members.push_back(member.trial_id + " " + member.variant);
    CHECK(row == *reader.trial(member.trial_id));
    const TrialFacts expected = reader.trial_facts(std::vector<std::string>{member.trial_id}).at(0);
    CHECK(facts.trial_id == expected.trial_id);
    CHECK(facts.known);
    CHECK(facts.cancelled == expected.cancelled);
    CHECK(facts.retried_after == expected.retried_after);
    CHECK(facts.result_attempt == expected.result_attempt);
    REQUIRE(facts.attempts.size() == expected.attempts.size());
    for (std::size_t at = 0; at < facts.attempts.size(); ++at) {
      CHECK(facts.attempts[at].attempt == expected.attempts[at].attempt);
      CHECK(facts.attempts[at].outcome == expected.attempts[at].outcome);
      CHECK(facts.attempts[at].note == expected.attempts[at].note);
    }
  });
  CHECK(members ==
        std::vector<std::string>{"t7 a", "t6 a", "t5 a", "t4 a", "t3 a", "t2 a", "t1 a", "t1 b"});
  reader.each_member("none", [](const auto&, const auto&, const auto&) { FAIL("a member"); });
}

TEST_CASE("Trials that are in the same state for the same reason are counted together",
          "[results]") {
  World world;
  const SweepOutline outline = world.store.read().outline("s");
  CHECK(outline.trials == 7);
  std::map<std::string, std::int64_t> alike;
  for (const auto& [trial, count] : outline.alike) alike[trial] = count;
  CHECK(alike == std::map<std::string, std::int64_t>{{"t1", 2}, {"t3", 1}, {"t5", 1}});
  CHECK(outline.others == std::vector<std::string>{"t2", "t4", "t7"});
  CHECK(world.store.read().outline("none").trials == 0);
  CHECK(world.store.read().variants("s", "t1") == std::vector<std::string>{"a", "b"});
  CHECK(world.store.read().variants("s", "none").empty());
}

TEST_CASE("Finding trials by the beginning of their ids stays fast with many trials", "[results]") {
  World world;
  Batch batch = world.store.begin();
  for (int trial = 0; trial < 20'000; ++trial) {
    batch.record_trial({fmt::format("{:05}", trial), "{}", "", {}, {}});
  }
  batch.record_trial({"00%_x", "{}", "", {}, {}});
  batch.record_trial({"00\u00e9", "{}", "", {}, {}});
  batch.commit();
  const Reader& reader = world.store.read();
  CHECK(reader.trials_with_prefix("0000", 3) ==
        std::vector<std::string>{"00000", "00001", "00002"});
  CHECK(reader.trials_with_prefix("00%", 3) == std::vector<std::string>{"00%_x"});
  CHECK(reader.trials_with_prefix("00\u00e9", 3) == std::vector<std::string>{"00\u00e9"});
  CHECK(reader.trials_with_prefix("00000", 6) == std::vector<std::string>{"00000"});
  CHECK(reader.trials_with_prefix("", 30'000).size() == 20'009);
  CHECK(reader.trials_with_prefix("zz", 6).empty());
  const auto began = std::chrono::steady_clock::now();
  for (int time = 0; time < 3'000; ++time) {
    REQUIRE(reader.trials_with_prefix("00000", 6).size() == 1);
  }
  CHECK(std::chrono::steady_clock::now() - began < 4s);
}

}  // namespace petlab::results
