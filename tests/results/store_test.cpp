#include "results/store.h"

#include <fmt/format.h>

#include <limits>

#include "results/attempt_events.h"
#include "results/decisions.h"
#include "results/examples.h"
#include "tests/results/helpers.h"
#include "tests/support/broken_invariant.h"
#include "tests/support/catch.h"
#include "tests/support/programs.h"
#include "tests/support/temp_dir.h"

namespace petlab::results {
namespace {

using testing::TempDir;
using Lines = std::vector<std::string>;

struct StoreFixture {
  TempDir folder;
  std::filesystem::path file = folder.path() / "petlab.db";
  Store store{file};

  template <typename Body>
  auto write(Body body) {
    Batch batch = store.begin();
    if constexpr (std::is_void_v<decltype(body(batch))>) {
      body(batch);
      batch.commit();
    } else {
      auto result = body(batch);
      batch.commit();
      return result;
    }
  }
  /// Claims an attempt that is planned from the database's current state.
  AttemptRef begin(NewAttempt wanted) {
    wanted.planned_from = facts(wanted.trial_id).changes;
    return std::get<AttemptRef>(write([&](Batch& b) { return b.begin_attempt(wanted); }));
  }
  void finish(const AttemptRef& attempt) {
    write([&](Batch& b) { record_finished(b, attempt, {}, 9); });
  }
  TrialFacts facts(const std::string& id) {
    return store.read().trial_facts(std::vector<std::string>{id}).at(0);
  }
};

NewAttempt resumed(const std::string& id, std::int64_t parent, std::int64_t seq) {
  NewAttempt attempt = request(id);
  attempt.resume = protocol::Resume{parent, seq * 10, seq, "../x"};
  return attempt;
}

}  // namespace

TEST_CASE("Results follow the finished attempt and its parents up to their checkpoints",
          "[results]") {
  StoreFixture f;
  f.write([](Batch& b) {
    b.record_sweep({"s", "about", "s.yaml", "sha256:s", {{"t1", "vanilla"}}}, {{trial_row("t1")}},
                   1);
  });
  const AttemptRef first = f.begin(request("t1"));
  f.write([&](Batch& b) { append_losses(b, first, 5, 100); });
  f.write([&](Batch& b) { b.record_ending(first, {Outcome::crashed, "died", {}, 9, "tail", 6}); });
  const AttemptRef second = f.begin(resumed("t1", 1, 2));
  CHECK(second.number == 2);
  f.write([&](Batch& b) { append_losses(b, second, 2, 200); });
  CHECK(rows(f.file, "SELECT * FROM results").empty());

  f.write([&](Batch& b) {
    record_finished(b, second, {50, "artifact.petl", 900.0, 928, 12.0, 3.0}, 9);
  });
  CHECK(rows(f.file, "SELECT attempt, seq, value, bls_bits, stored_bits FROM results") ==
        Lines{"1|1|101.0|900.0|928", "1|2|102.0|900.0|928", "2|1|201.0|900.0|928",
              "2|2|202.0|900.0|928"});
  CHECK(rows(f.file,
             "SELECT DISTINCT sweep, variant, seed, backbone, tasks, module_kind, "
             "module_share, module_mask, module_bottleneck, module_rank FROM "
             "sweep_results") == Lines{"s|vanilla|42|minilm|cola|adapter|0|none|64|NULL"});
  CHECK(rows(f.file, "SELECT count(*) FROM metrics") == Lines{"7"});
}

TEST_CASE("Of several finished attempts the lowest number counts, whenever it finishes",
          "[results]") {
  StoreFixture f;
  f.write([](Batch& b) { b.record_trial(trial_row("t1")); });
  const AttemptRef first = f.begin(request("t1"));
  f.write([&](Batch& b) {
    append_losses(b, first, 1, 100);
    b.record_ending(first, {Outcome::lost, "declared dead", {}, {}, "", 6});
  });
  const AttemptRef second = f.begin(request("t1"));
  f.write([&](Batch& b) { append_losses(b, second, 1, 200); });
  f.finish(second);
  CHECK(rows(f.file, "SELECT attempt, value FROM results") == Lines{"2|201.0"});
  f.finish(first);
  CHECK(rows(f.file, "SELECT attempt, value FROM results") == Lines{"1|101.0"});
}

TEST_CASE("A chain of resumed attempts counts up to each checkpoint", "[results]") {
  StoreFixture f;
  f.write([](Batch& b) { b.record_trial(trial_row("t1")); });
  AttemptRef last = f.begin(request("t1"));
  for (std::int64_t number = 1; number <= 4; ++number) {
    f.write([&](Batch& b) {
      append_losses(b, last, 5, 100 * static_cast<double>(number));
      if (number < 4) b.record_ending(last, {Outcome::crashed, "", {}, 9, "", 6});
    });
    if (number < 4) last = f.begin(resumed("t1", number, number));
  }
  f.finish(last);
  CHECK(rows(f.file, "SELECT attempt, count(*) FROM results GROUP BY attempt") ==
        Lines{"1|1", "2|2", "3|3", "4|5"});
}

TEST_CASE("A trial is claimed by one orchestrator at a time", "[results]") {
  StoreFixture f;
  f.write([](Batch& b) { b.record_trial(trial_row("t1")); });
  Store rival(f.file);
  const AttemptRef first = f.begin(request("t1"));
  CHECK(first.number == 1);
  const auto claim = [&](std::int64_t planned_from) {
    NewAttempt wanted = request("t1");
    wanted.planned_from = planned_from;
    Batch batch = rival.begin();
    Claim result = batch.begin_attempt(wanted);
    batch.commit();
    return result;
  };
  ClaimRefusal refusal = std::get<ClaimRefusal>(claim(0));
  CHECK(refusal.open);
  CHECK(refusal.latest == 1);
  CHECK(refusal.owner == "me");
  CHECK(refusal.host == "here");
  f.write([&](Batch& b) { b.record_ending(first, {Outcome::crashed, "", 1, {}, "", 6}); });
  refusal = std::get<ClaimRefusal>(claim(0));  // planned before attempt 1
  CHECK_FALSE(refusal.open);
  CHECK(refusal.latest == 1);
  const std::int64_t ended = f.facts("t1").changes;
  f.write([](Batch& b) { set_cancelled(b, "t1", true); });
  CHECK(std::get<ClaimRefusal>(claim(f.facts("t1").changes)).cancelled);
  f.write([](Batch& b) { set_cancelled(b, "t1", false); });
  CHECK(std::holds_alternative<ClaimRefusal>(claim(ended)));  // planned before the user's decisions
  CHECK(std::get<AttemptRef>(claim(f.facts("t1").changes)).number == 2);
}

TEST_CASE("A claim that was planned before an attempt was forgotten is refused", "[results]") {
  StoreFixture f;
  f.write([](Batch& b) { b.record_trial(trial_row("t1")); });
  const AttemptRef first = f.begin(request("t1"));
  // Two orchestrators see the claim of a dead one. One of them forgets it and runs the trial.
  NewAttempt late = request("t1");
  late.planned_from = f.facts("t1").changes;
  f.write([&](Batch& b) { b.forget_attempt(first); });
  const AttemptRef second = f.begin(request("t1"));
  CHECK(second.number == first.number + 1);
  CHECK(second.key > first.key);
  f.write([&](Batch& b) { b.record_ending(second, {Outcome::crashed, "", 1, {}, "", 6}); });
  const auto claim = [&] { return f.write([&](Batch& b) { return b.begin_attempt(late); }); };
  CHECK_FALSE(std::get<ClaimRefusal>(claim()).open);
  late.planned_from = f.facts("t1").changes;
  CHECK(std::holds_alternative<AttemptRef>(claim()));
}

TEST_CASE("A trial with a result is claimed only after the user asked for a rerun", "[results]") {
  StoreFixture f;
  f.write([](Batch& b) { b.record_trial(trial_row("t1")); });
  f.finish(f.begin(request("t1")));
  NewAttempt again = request("t1");
  const auto claim = [&] {
    again.planned_from = f.facts("t1").changes;
    return f.write([&](Batch& b) { return b.begin_attempt(again); });
  };
  CHECK(std::get<ClaimRefusal>(claim()).finished);
  f.write([](Batch& b) { allow_retry(b, "t1", 1); });
  const AttemptRef second = std::get<AttemptRef>(claim());
  CHECK(second.number == 2);
  f.finish(second);
  CHECK(std::get<ClaimRefusal>(claim()).finished);
}

TEST_CASE("Writes to a forgotten attempt do not reach another attempt", "[results]") {
  StoreFixture f;
  f.write([](Batch& b) {
    b.record_trial(trial_row("t1", 1));
    b.record_trial(trial_row("t2", 2));
  });
  const AttemptRef forgotten = f.begin(request("t1"));
  f.write([&](Batch& b) { b.forget_attempt(forgotten); });
  CHECK(cursor_of(f.store.read(), forgotten).closed);
  const AttemptRef other = f.begin(request("t2"));
  f.write([&](Batch& b) {
    b.record_ending(forgotten, {Outcome::lost, "declared dead", {}, {}, "", 6});
  });
  CHECK(f.facts("t2").attempts.at(0).outcome == Outcome::open);
  CHECK(cursor_of(f.store.read(), other) == Cursor{});
}

TEST_CASE("A decision to retry does not apply to later attempts", "[results]") {
  StoreFixture f;
  f.write([](Batch& b) { b.record_trial(trial_row("t1")); });
  // As in a rebuilt database, where the attempt of the decision has no directory.
  f.write([](Batch& b) { allow_retry(b, "t1", 2); });
  CHECK(f.begin(request("t1")).number == 3);
}

TEST_CASE("An attempt's number is above those of all existing directories", "[results]") {
  StoreFixture f;
  f.write([](Batch& b) { b.record_trial(trial_row("t1")); });
  NewAttempt wanted = request("t1");
  wanted.at_least = 4;
  const AttemptRef attempt = f.begin(wanted);
  CHECK(attempt.number == 4);
  f.write([&](Batch& b) { b.forget_attempt(attempt); });
  CHECK(f.begin(request("t1")).number == 5);  // a number is not reused
}

TEST_CASE("Facts contain everything that was recorded for an attempt", "[results]") {
  StoreFixture f;
  f.write([](Batch& b) { b.record_trial(trial_row("t1")); });
  const NewAttempt wanted = resumed("t1", 0, 3);
  const AttemptRef attempt = f.begin(wanted);
  AttemptFacts facts = f.facts("t1").attempts.at(0);
  CHECK(facts.attempt == attempt);
  CHECK(facts.begun == wanted);
  CHECK_FALSE(facts.launch);
  CHECK(facts.outcome == Outcome::open);
  CHECK_FALSE(facts.started_at);
  const Launch launch{77, 88, "node", "boot2", "pid:[2]", "GPU-1", "12_3", 6};
  f.write([&](Batch& b) {
    b.record_launch(attempt, launch);
    record_started(b, attempt,
                   {5, "w", "2", R"({"version":"1"})", "sha256:x", {{"cola", "sha256:d"}}}, 7);
    record_progress(b, attempt, {10, 20, 0.5}, 8);
    record_checkpoint(b, attempt, {10, 4, "checkpoint/a"});
  });
  facts = f.facts("t1").attempts.at(0);
  CHECK(*facts.launch == launch);
  CHECK(facts.begun.host == "node");
  CHECK(facts.worker == "w");
  CHECK(facts.worker_version == "2");
  CHECK(facts.numerics == R"({"version":"1"})");
  CHECK(facts.backbone_digest == "sha256:x");
  CHECK(facts.data_digests == std::map<std::string, std::string>{{"cola", "sha256:d"}});
  CHECK(*facts.started_at == 7);
  CHECK(*facts.checkpoint == CheckpointAt{10, 4, "checkpoint/a"});
  const ProgressFacts progress = open_progress(f.store.read()).at(0);
  CHECK(progress.attempt == attempt);
  CHECK(progress.step == 10);
  CHECK(*progress.loss == 0.5);
  f.write([&](Batch& b) {
    record_failed(b, attempt, {"out of memory", "out_of_memory"}, 9);
    b.record_ending(attempt, {Outcome::failed, "worker said so", 1, {}, "last\nlines", 10});
  });
  facts = *f.store.read().attempt_facts("t1", 1);
  CHECK(facts.outcome == Outcome::failed);
  CHECK(facts.kind == "out_of_memory");
  CHECK(facts.reason == "out of memory");
  CHECK(*facts.exit_code == 1);
  CHECK_FALSE(facts.signal);
  CHECK(facts.log_tail == "last\nlines");
  CHECK(*facts.ended_at == 9);
  CHECK(f.store.read().open_attempts().empty());
  CHECK(open_progress(f.store.read()).empty());

  f.write([&](Batch& b) { allow_retry(b, "t1", 1); });
  CHECK(f.facts("t1").retried_after == 1);
  CHECK_FALSE(f.facts("nobody").known);
  CHECK_FALSE(f.store.read().attempt_facts("t1", 9));
}

TEST_CASE("Equal numbers of examples are stored once for all attempts", "[results]") {
  StoreFixture f;
  const Examples cola = {{"cola", {{"train", 8551}, {"validation", 521}, {"test", 522}}}};
  const Examples fewer = {{"cola", {{"train", 100}, {"validation", 521}, {"test", 522}}}};
  f.write([&](Batch& b) {
    for (const char* id : {"t1", "t2", "t3", "t4", "t5"}) b.record_trial(trial_row(id));
    b.record_sweep(
        {"s", "", "", "", {{"t1", ""}, {"t2", "v"}, {"t2", "w"}, {"t3", ""}, {"t4", ""}}}, {}, 1);
    protocol::Finished finished;
    finished.examples = cola;
    for (const char* id : {"t1", "t2", "t4", "t5"}) {
      record_finished(b, b.record_attempt(request(id), 1), finished, 9);
    }
    set_hidden(b, "t4", Hiding{"far off", 8});
    // For a resumed trial the finished attempt counts, for a repeated one the first.
    b.record_attempt(request("t3"), 1);
    finished.examples = fewer;
    record_finished(b, b.record_attempt(request("t3"), 2), finished, 9);
    record_finished(b, b.record_attempt(request("t1"), 2), finished, 9);
  });
  const auto of = [&](const char* id, std::int64_t number) {
    return examples_of(f.store.read(), f.store.read().attempt_facts(id, number)->attempt);
  };
  CHECK(of("t1", 1) == cola);
  CHECK(of("t1", 2) == fewer);
  CHECK(of("t3", 1).empty());
  const auto found = examples_in(f.store.read(), "s");
  REQUIRE(found.size() == 3);
  CHECK(*found.at("t1") == cola);
  CHECK(found.at("t2") == found.at("t1"));  // the same object
  CHECK(*found.at("t3") == fewer);
  CHECK(examples_in(f.store.read(), "nothing").empty());
  CHECK(rows(f.file, "SELECT count(*) FROM example_texts") == std::vector<std::string>{"2"});
  CHECK(rows(f.file,
             "SELECT task, split, examples, is_result FROM attempt_examples WHERE trial_id = 't3' "
             "ORDER BY split") ==
        std::vector<std::string>{"cola|test|522|1", "cola|train|100|1", "cola|validation|521|1"});
  f.write([&](Batch& b) { b.forget_attempt(f.store.read().attempt_facts("t3", 2)->attempt); });
  CHECK(rows(f.file, "SELECT count(*) FROM attempt_examples WHERE trial_id = 't3'") ==
        std::vector<std::string>{"0"});
}

TEST_CASE("A renewed result replaces the old one once it is finished", "[results]") {
  StoreFixture f;
  f.write([](Batch& b) { b.record_trial(trial_row("t1")); });
  const auto finish = [&](std::int64_t number, double value) {
    f.write([&](Batch& b) {
      const AttemptRef attempt = b.record_attempt(request("t1"), number);
      const MetricReport row{1, 1, series_in(b, "test", "cola", "accuracy"), value};
      append_metrics(b, attempt, {&row, 1});
      record_finished(b, attempt, {}, 1);
    });
  };
  const auto seen = [&] {
    const auto rows = query(f.file, "SELECT attempt FROM results").rows;
    REQUIRE(rows.size() == 1);
    CHECK(f.facts("t1").result_attempt == std::get<std::int64_t>(rows[0][0]));
    return std::get<std::int64_t>(rows[0][0]);
  };
  finish(1, 0.25);
  finish(2, 0.5);  // a late one: the first counts
  CHECK(seen() == 1);
  f.write([&](Batch& b) { allow_retry(b, "t1", 2); });
  CHECK(seen() == 1);
  finish(3, 0.75);
  CHECK(seen() == 3);
  // A second renewal that has not finished does not bring the first result back.
  f.write([&](Batch& b) { allow_retry(b, "t1", 3); });
  CHECK(seen() == 3);
  finish(4, 1);
  CHECK(seen() == 4);
  REQUIRE(decided(f.store.read()).size() == 1);
  CHECK(decided(f.store.read())[0].retried_after == 3);
}

TEST_CASE("The last recorded sweep of a name counts; the trials of earlier ones stay",
          "[results]") {
  StoreFixture f;
  f.write([](Batch& b) {
    b.record_sweep({"s", "", "s.yaml", "", {{"t1", "a"}, {"t1", "b"}, {"t2", "a"}}},
                   {{trial_row("t1", 1), trial_row("t2", 2)}}, 1);
  });
  CHECK(f.store.read().sweep("s")->members.size() == 3);
  const SweepRow later{"s", "changed", "s.yaml", "d", {{"t2", ""}}};
  f.write([&](Batch& b) { b.record_sweep(later, {{trial_row("t2", 2)}}, 2); });
  CHECK(*f.store.read().sweep("s") == later);
  CHECK(f.store.read().sweep_names() == Lines{"s"});
  CHECK(f.store.read().trial("t1")->trial_id == "t1");
  CHECK_FALSE(f.store.read().sweep("other"));
  CHECK(f.store.read().trials_with_prefix("t", 10) == Lines{"t1", "t2"});
  CHECK(f.store.read().trials_with_prefix("%", 10).empty());
}

TEST_CASE("A trial that is recorded again takes the later text and keeps known sizes",
          "[results]") {
  StoreFixture f;
  f.write([](Batch& b) { b.record_trial(trial_row("t1", 1)); });
  TrialRow later = trial_row("t1", 7);
  later.bls_bits.reset();
  later.stored_bits.reset();
  later.backbone_digest.clear();
  f.write([&](Batch& b) { b.record_trial(later); });
  const TrialRow row = *f.store.read().trial("t1");
  CHECK(row.config == later.config);
  CHECK(*row.bls_bits == 1000.0);
  CHECK(*row.stored_bits == 1024);
  CHECK(row.backbone_digest == "sha256:b");
  CHECK(rows(f.file, "SELECT seed FROM trials") == Lines{"7"});
}

TEST_CASE("Writes of an uncommitted batch are rolled back", "[results]") {
  StoreFixture f;
  {
    Batch batch = f.store.begin();
    batch.record_trial(trial_row("t1"));
    series_in(batch, "train", "cola", "loss");
    CHECK(f.store.read().trial("t1"));
    CHECK(testing::broken_invariant([&] { f.store.begin(); }) ==
          "a second transaction begins within another");
  }
  CHECK_FALSE(f.store.read().trial("t1"));
  CHECK(f.store.last_rolled_back() == 1);
  f.write([](Batch& b) { b.record_trial(trial_row("t1")); });
  const AttemptRef attempt = f.begin(request("t1"));
  f.write([&](Batch& b) { append_losses(b, attempt, 1); });
  f.finish(attempt);
  CHECK(rows(f.file, "SELECT split, task, name FROM results") == Lines{"train|cola|loss"});
}

TEST_CASE("Values are read back exactly", "[results]") {
  StoreFixture f;
  f.write([](Batch& b) { b.record_trial(trial_row("t1")); });
  const AttemptRef attempt = f.begin(request("t1"));
  const std::vector<double> values = {0.1 + 0.2, 1e-320, -0.0,
                                      3.0,       1e300,  std::numeric_limits<double>::denorm_min()};
  f.write([&](Batch& b) {
    std::vector<MetricReport> all;
    const Series series = series_in(b, "test", "cola", "é");
    for (std::size_t i = 0; i < values.size(); ++i) {
      all.push_back({static_cast<std::int64_t>(i), 1, series, values[i]});
    }
    all.push_back({100, 1, series, std::nullopt});
    append_metrics(b, attempt, all);
  });
  f.finish(attempt);
  const auto found =
      query(f.file, "SELECT value FROM results WHERE name = ?1 ORDER BY seq", {std::string("é")});
  REQUIRE(found.rows.size() == values.size() + 1);
  for (std::size_t i = 0; i < values.size(); ++i) {
    CHECK(std::get<double>(found.rows[i][0]) == values[i]);
  }
  CHECK(std::holds_alternative<std::monostate>(found.rows.back()[0]));
}

TEST_CASE("The user group of a configuration is a JSON column", "[results]") {
  StoreFixture f;
  TrialRow row = trial_row("t1");
  auto config = nlohmann::ordered_json::parse(row.config);
  config["user"] = {{"width", 3}};
  config["task"] = "cola";
  row.config = config.dump();
  f.write([&](Batch& b) { b.record_trial(row); });
  f.finish(f.begin(request("t1")));
  CHECK(rows(f.file, "SELECT json_extract(user, '$.width') FROM trials") == Lines{"3"});
}

TEST_CASE("Invalid arguments are refused", "[results]") {
  StoreFixture f;
  Batch batch = f.store.begin();
  CHECK_THROWS_WITH(batch.begin_attempt(request("t9")), "trial t9 is not in " + f.file.string());
  CHECK_THROWS_AS(set_cancelled(batch, "t9", true), std::invalid_argument);
  CHECK_THROWS_AS(batch.record_ending({}, {Outcome::finished, "", {}, {}, "", 0}),
                  std::invalid_argument);
  CHECK_THROWS_WITH(batch.record_trial({"t1", "[1]", "", {}, {}}),
                    "trial t1: its configuration is no JSON object");
}

TEST_CASE("A reader sees the writes of others", "[results]") {
  StoreFixture f;
  const Reader reader(f.file);
  const auto before = reader.data_version();
  CHECK(reader.data_version() == before);
  f.write([](Batch& b) { b.record_trial(trial_row("t1")); });
  CHECK(reader.data_version() != before);
  CHECK(reader.trial("t1"));
}

}  // namespace petlab::results
