#include <fstream>

#include "results/attempt_events.h"
#include "results/connection.h"
#include "results/decisions.h"
#include "results/examples.h"
#include "results/loss_curve.h"
#include "results/one_state.h"
#include "results/remarks.h"
#include "results/scores.h"
#include "tests/results/helpers.h"
#include "tests/support/catch.h"
#include "tests/support/programs.h"
#include "tests/support/temp_dir.h"

namespace petlab::results {
namespace {

using testing::TempDir;
using Lines = std::vector<std::string>;

/// A database as an earlier petlab left it: tests/results/schemas/NAME.sql, with a resumed trial
/// that has a result (t1), one that failed (t2) and one that was cancelled (t3).
std::filesystem::path old_database(const TempDir& folder, const std::string& name) {
  const auto file = folder.write("old.db", "");
  const std::string sql =
      testing::read_file(testing::source_dir() / "tests/results/schemas" / (name + ".sql"));
  internal::Connection connection(file, internal::Connection::Mode::write, {});
  connection.exec(sql.c_str());
  return file;
}

Lines columns(const std::filesystem::path& file) {
  return rows(file,
              "SELECT m.name || ' ' || c.name FROM sqlite_schema m, pragma_table_info(m.name) c "
              "WHERE m.type IN ('table', 'view') ORDER BY 1");
}
Lines names(const std::filesystem::path& file) {
  return rows(file, "SELECT type || ' ' || name FROM sqlite_schema ORDER BY 1");
}

}  // namespace

TEST_CASE("a database of each earlier schema becomes one of this, and its work goes on",
          "[results]") {
  for (const std::string name :
       {"fewer_fields", "first", "decisions", "device_memory", "before_renewals", "before_remarks",
        "before_loss_points", "before_examples"}) {
    INFO(name);
    const bool has_memory = name == "device_memory" || name.starts_with("before_");
    const TempDir folder;
    const auto file = old_database(folder, name);
    const Lines as_it_was = names(file);
    Store store(file);
    // What it was is kept, once.
    const auto kept = folder.path() / "old.db.before-update";
    CHECK(names(kept) == as_it_was);
    CHECK(rows(kept, "SELECT trial_id FROM trials ORDER BY 1") == Lines{"t1", "t2", "t3"});
    CHECK(store.brought_up_to_date().find(kept.string()) != std::string::npos);
    std::filesystem::remove(kept);
    CHECK(Store(file).brought_up_to_date().empty());
    CHECK_FALSE(std::filesystem::exists(kept));
    const auto fresh = folder.path() / "fresh.db";
    { const Store another(fresh); }
    CHECK(columns(file) == columns(fresh));
    CHECK(names(file) == names(fresh));

    // What was there, through the views; the new columns hold what the configurations say.
    CHECK(rows(file,
               "SELECT variant, trial_id, attempt, step, name, value, module_share, "
               "training_dropout, data_max_tokens, module_bottleneck, bls_bits FROM sweep_results "
               "ORDER BY attempt, seq") == Lines{"a|t1|1|10|loss|0.5|1|0.25|128|64|990.0",
                                                 "a|t1|2|30|loss|0.125|1|0.25|128|64|990.0",
                                                 "a|t1|2|30|matthews|NULL|1|0.25|128|64|990.0"});
    CHECK(rows(file,
               "SELECT trial_id, module_share, training_dropout, data_max_tokens, "
               "json_extract(user, '$.width') FROM trials ORDER BY 1") ==
          Lines{"t1|1|0.25|128|3", "t2|0|-1.0|64|3", "t3|0|-1.0|128|3"});
    const auto facts = store.read().trial_facts(std::vector<std::string>{"t1", "t2", "t3"});
    CHECK(facts[0].result_attempt == 2);
    REQUIRE(facts[0].attempts.size() == 2);
    CHECK(facts[0].attempts[0].outcome == Outcome::stopped);
    CHECK(facts[0].attempts[1].begun.resume->checkpoint == "checkpoint/step-10");
    CHECK(facts[0].attempts[1].device_memory_mib ==
          (has_memory ? std::optional(700.0) : std::nullopt));
    CHECK(facts[1].attempts.at(0).reason == "no data");
    CHECK(facts[1].retried_after == (name == "decisions" || has_memory ? 1 : 0));
    CHECK(facts[0].renewed_after == 0);
    CHECK(facts[2].cancelled);

    // Work goes on: a retry, an attempt with all that it can report, a sweep recorded anew.
    Batch batch = store.begin();
    allow_retry(batch, "t2", 1);
    batch.record_trial(trial_row("t4"));
    const AttemptRef attempt = batch.record_attempt(request("t2"), 2);
    append_losses(batch, attempt, 3);
    const LossReport losses[] = {{1, 2, 0.5}, {2, 5, {}}};
    record_progress(batch, attempt, {5, 9, {}, 800.0}, 6, losses);
    protocol::Finished finished;
    finished.examples = {{"cola", {{"test", 5}}}};
    record_finished(batch, attempt, finished, 9);
    batch.record_sweep({"old", "", "", "", {{"t2", "b"}, {"t4", ""}}}, {}, 7);
    batch.commit();
    CHECK(rows(file, "SELECT count(*), min(value) FROM results WHERE trial_id = 't2'") ==
          Lines{"3|1.0"});
    CHECK(store.read().attempt_facts("t2", 2)->device_memory_mib == 800.0);
    CHECK(Reader(file).sweep("old")->members.size() == 2);
    CHECK(LossReader(file).of_trial("t1").empty());
    CHECK(LossReader(file).of_trial("t2").size() == 2);
    CHECK(examples_in(Reader(file), "old").size() == 1);
  }
}

TEST_CASE("where there is no space for what a database was, it stays that", "[results]") {
  const TempDir folder;
  const auto file = old_database(folder, "first");
  const Lines before = names(file);
  const auto in_the_way = folder.path() / "old.db.before-update/x";
  std::filesystem::create_directories(in_the_way);
  CHECK_THROWS_WITH(Store(file), testing::has_text("old.db.before-update: cannot make it"));
  CHECK(names(file) == before);
  std::filesystem::remove_all(in_the_way.parent_path());
  CHECK_FALSE(Store(file).brought_up_to_date().empty());
}

TEST_CASE("a reader of a database that knows of no renewals sees what there is", "[results]") {
  const TempDir folder;
  const auto file = old_database(folder, "before_renewals");
  const Lines before = names(file);
  const Reader reader(file);
  const auto facts = reader.trial_facts(std::vector<std::string>{"t1"}).at(0);
  CHECK(facts.result_attempt == 2);
  CHECK(facts.renewed_after == 0);
  CHECK(care_of(reader, "t1").renewals.empty());
  CHECK(reader.sweep("old")->overrides.empty());
  CHECK(reader.outline("old").hidden == 0);
  CHECK(decided(reader).size() == 2);
  std::int64_t members = 0;
  reader.each_member("old", [&](const auto&, const auto&, const auto&) { ++members; });
  CHECK(members == 3);
  CHECK(names(file) == before);
  // The same reader, after another petlab has made it fit.
  Store store(file);
  Batch batch = store.begin();
  renew(batch, "t1", {2, true, "wrong", 7});
  set_hidden(batch, "t2", Hiding{"far off", 8});
  batch.commit();
  CHECK(reader.trial_facts(std::vector<std::string>{"t1"}).at(0).discarded_after == 2);
  CHECK(reader.outline("old").discarded == 1);
  members = 0;
  reader.each_member("old", [&](const auto&, const auto&, const auto&) { ++members; });
  CHECK(members == 2);
}

TEST_CASE("a reader of a database without a field's column has what its trials were trained with",
          "[results]") {
  for (const char* schema : {"before_loss_points", "before_remarks"}) {
    const TempDir folder;
    const auto file = old_database(folder, schema);
    const Lines before = names(file);
    const ScoreReader reader(file);
    const auto trials = [&](const char* type) {
      ScoreQuestion question;
      question.fields = {word_named("training.compute")};
      question.where = {{word_named("training.compute"), Condition::Op::equal, {type}}};
      std::string ids;
      reader.each(question, [&](const ScoredTrial& trial) {
        ids += trial.trial_id + " ";
        CHECK((trial.fields[0] == Value(std::string(type))));
      });
      return ids;
    };
    INFO(schema);
    CHECK(trials("float32") == "t1 t2 t3 ");
    CHECK(trials("bf16").empty());
    CHECK(reader.values_of(word_named("training.compute"), 9) == Lines{"float32"});
    CHECK(names(file) == before);
    { const Store store(file); }
    CHECK(trials("float32") == "t1 t2 t3 ");
  }
}

TEST_CASE("a reader of a database that knows of no tags finds none", "[results]") {
  const TempDir folder;
  const auto file = old_database(folder, "before_remarks");
  const Lines before = names(file);
  const Reader reader(file);
  const ScoreReader scores(file);
  const auto trials = [&](Condition::Op op, std::vector<Value> values) {
    ScoreQuestion question;
    question.fields = {word_named("tag")};
    question.where = {{word_named("tag"), op, std::move(values)}};
    question.splits = {"test"};
    std::string ids;
    scores.each(question, [&](const ScoredTrial& trial) { ids += trial.trial_id + " "; });
    return ids;
  };
  CHECK(trials(Condition::Op::equal, {"good"}).empty());
  CHECK(trials(Condition::Op::unequal, {"good"}) == "t1 t2 t3 ");
  CHECK(trials(Condition::Op::equal, {Value()}) == "t1 t2 t3 ");
  CHECK(remarks_of(reader, {"t1", ""}).all.empty());
  CHECK(all_tags(reader).empty());
  CHECK(scores.values_of(word_named("tag"), 9).empty());
  CHECK_THROWS_AS(OneState(file), Error);
  CHECK(names(file) == before);
  // The same readers, after another petlab has made it fit.
  Store store(file);
  Batch batch = store.begin();
  record_remark(batch, {"t2", ""}, {protocol::Remark::What::tag, "good", 5});
  batch.commit();
  CHECK(trials(Condition::Op::equal, {"good"}) == "t2 ");
  CHECK(remarks_of(reader, {"t2", ""}).tags == Lines{"good"});
}

TEST_CASE("a database of before has no loss curves, and a reader gives it none", "[results]") {
  const TempDir folder;
  const auto file = old_database(folder, "before_loss_points");
  const Lines before = names(file);
  const LossReader reader(file);
  CHECK(reader.of_trial("t1").empty());
  reader.each_of_sweep("old", [](const TrialLosses& losses) { FAIL(losses.trial_id); });
  CHECK(names(file) == before);
}

TEST_CASE("a reader of a database that knows of no examples finds none", "[results]") {
  const TempDir folder;
  const auto file = old_database(folder, "before_examples");
  const Lines before = names(file);
  const Reader reader(file);
  CHECK(examples_in(reader, "old").empty());
  const AttemptRef attempt = reader.attempt_facts("t1", 2)->attempt;
  CHECK(examples_of(reader, attempt).empty());
  CHECK_THROWS_WITH(OneState(file), Catch::Matchers::StartsWith(
                                        file.string() + ": an earlier petlab made the database"));
  CHECK(names(file) == before);
  // The same reader, after another petlab has made it fit.
  Store store(file);
  Batch batch = store.begin();
  protocol::Finished finished;
  finished.examples = {{"cola", {{"test", 5}}}};
  record_finished(batch, attempt, finished, 9);
  batch.commit();
  CHECK(examples_of(reader, attempt) == finished.examples);
}

TEST_CASE("a reader of a database that knows of no allowed retries says that nobody said",
          "[results]") {
  const TempDir folder;
  const auto file = old_database(folder, "device_memory");
  const Reader reader(file);
  const auto attempts = reader.trial_facts(std::vector<std::string>{"t2"}).at(0).attempts;
  REQUIRE(attempts.size() == 1);
  CHECK_FALSE(attempts[0].begun.retries);
  CHECK(attempts[0].reason == "no data");
  std::int64_t members = 0;
  reader.each_member("old", [&](const auto&, const auto&, const auto&) { ++members; });
  CHECK(members == 3);
  // The same reader, after another petlab has made it fit and claimed.
  Store store(file);
  NewAttempt wanted = request("t2");
  wanted.retries = 0;
  Batch batch = store.begin();
  batch.record_attempt(wanted, 2);
  batch.commit();
  CHECK(reader.attempt_facts("t2", 2)->begun.retries == 0);
}

TEST_CASE("a reader names what makes an earlier database fit, and changes nothing", "[results]") {
  const TempDir folder;
  const auto file = old_database(folder, "first");
  const Lines before = names(file);
  std::string message;
  try {
    const Reader reader(file);
  } catch (const Error& error) {
    message = error.what();
  }
  CHECK(message.find(file.string() +
                     ": an earlier petlab made the database; petlab db import --db ") == 0);
  CHECK(names(file) == before);
  { const Store store(file); }
  CHECK(Reader(file).sweep("old")->members.size() == 3);
}

}  // namespace petlab::results
