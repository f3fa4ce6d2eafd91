#include <SQLiteCpp/Database.h>
#include <SQLiteCpp/Statement.h>
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "results/attempt_events.h"
#include "results/connection.h"
#include "results/decisions.h"
#include "results/examples.h"
#include "results/loss_curve.h"
#include "results/notices.h"
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
  SQLite::Database(file.string(), SQLite::OPEN_READWRITE).exec(sql);
  return file;
}

constexpr const char* kSchemas[] = {"fewer_fields",       "first",           "decisions",
                                    "device_memory",      "before_renewals", "before_remarks",
                                    "before_loss_points", "before_examples", "last_of_version_1",
                                    "last_of_version_2"};

/// Collects the notices that are printed during its lifetime.
struct Notices {
  Notices() {
    set_notice_printer([this](const std::string& text) { lines.push_back(text); });
  }
  ~Notices() { set_notice_printer({}); }
  std::vector<std::string> lines;
};

int version_of(std::string_view schema) { return schema == "last_of_version_2" ? 2 : 1; }

std::string updated_line(const std::filesystem::path& file, int version) {
  return fmt::format("{0}: updated from version {1} to {2}; a copy of the old one is {0}.v{1}.bak",
                     file.string(), version, kDatabaseVersion);
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

TEST_CASE("A database of each earlier schema is updated, and its work continues", "[results]") {
  for (const std::string name : kSchemas) {
    INFO(name);
    const bool has_memory =
        name == "device_memory" || name.starts_with("before_") || name.starts_with("last_");
    const TempDir folder;
    const auto file = old_database(folder, name);
    Notices notices;
    Store store(file);
    CHECK(notices.lines == Lines{updated_line(file, version_of(name))});
    { const Store again(file); }
    CHECK(notices.lines.size() == 1);
    const auto fresh = folder.path() / "fresh.db";
    { const Store another(fresh); }
    CHECK(columns(file) == columns(fresh));
    CHECK(names(file) == names(fresh));

    // The views show the old content; new columns contain the values of the configurations.
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

    // Work continues: a retry, an attempt with every kind of report, a sweep that is recorded
    // again.
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

TEST_CASE("If a copy cannot be written, an old database stays as it was", "[results]") {
  const TempDir folder;
  const auto file = old_database(folder, "first");
  const auto stored = [&] {
    return SQLite::Database(file.string())
        .execAndGet(
            "SELECT group_concat(sql) || user_version FROM sqlite_schema, "
            "pragma_user_version")
        .getString();
  };
  const std::string before = stored();
  const auto in_the_way = folder.path() / "old.db.v1.bak/x";
  std::filesystem::create_directories(in_the_way);
  Notices notices;
  CHECK_THROWS_WITH(Store(file), testing::has_text("old.db.v1.bak: cannot make it"));
  CHECK((stored() == before));
  CHECK(notices.lines.empty());
  std::filesystem::remove_all(in_the_way.parent_path());
  { const Store store(file); }
  CHECK(notices.lines == Lines{updated_line(file, 1)});
}

TEST_CASE("A reader of an old database answers as after its update, and does not change it",
          "[results]") {
  for (const char* schema : kSchemas) {
    INFO(schema);
    const TempDir folder;
    const auto file = old_database(folder, schema);
    const std::string before = testing::read_file(file);
    const auto answers = [&] {
      Lines all = rows(file, "SELECT * FROM sweep_results ORDER BY trial_id, attempt, seq");
      for (const char* sql : {"SELECT * FROM sweep_scores ORDER BY trial_id, name",
                              "SELECT * FROM trials ORDER BY trial_id",
                              "SELECT * FROM attempt_provenance ORDER BY trial_id, attempt"}) {
        for (std::string& line : rows(file, sql)) all.push_back(std::move(line));
      }
      const Reader reader(file);
      const ScoreReader scores(file);
      const OneState state(file);
      CHECK(LossReader(file).of_trial("t1").empty());
      CHECK(state.reader().sweep("old")->members.size() == 3);
      for (const TrialFacts& facts :
           reader.trial_facts(std::vector<std::string>{"t1", "t2", "t3"})) {
        all.push_back(fmt::format("{} {} {} {}", facts.trial_id, facts.attempts.size(),
                                  facts.result_attempt.value_or(0), facts.retried_after));
      }
      for (const char* compute : {"float32", "bf16"}) {
        ScoreQuestion question;
        question.where = {{word_named("training.compute"), Condition::Op::equal, {compute}},
                          {word_named("tag"), Condition::Op::unequal, {"good"}}};
        scores.each(question, [&](const ScoredTrial& trial) {
          all.push_back(fmt::format("{} {} {}", compute, trial.trial_id, trial.scores().size()));
        });
      }
      return all;
    };
    Notices notices;
    const Lines read = answers();
    CHECK(std::count(read.begin(), read.end(), "float32 t2 0") == 1);
    CHECK((testing::read_file(file) == before));
    CHECK_FALSE(
        std::filesystem::exists(fmt::format("{}.v{}.bak", file.string(), version_of(schema))));
    CHECK(notices.lines.empty());
    print_copy_notices();
    print_copy_notices();
    CHECK(notices.lines ==
          Lines{fmt::format("note: {0}: the database has version {1}, this petlab "
                            "writes 3; it was read through an updated copy (petlab "
                            "db update --db {0} updates it)",
                            file.string(), version_of(schema))});
    { const Store store(file); }
    CHECK(answers() == read);
  }
}

TEST_CASE("A notice about a copy is printed only if its database was not updated since",
          "[results]") {
  const TempDir folder;
  const auto file = old_database(folder, "last_of_version_1");
  Notices notices;
  { const Reader reader(file); }
  { const Store store(file); }
  print_copy_notices();
  CHECK(notices.lines == Lines{updated_line(file, 1)});
}

TEST_CASE("A reader of an old database sees later writes, and its update", "[results]") {
  const TempDir folder;
  const auto file = old_database(folder, "last_of_version_1");
  const Reader reader(file);
  const ScoreReader scores(file);
  std::int64_t version = reader.data_version();
  const auto changed = [&] { return std::exchange(version, reader.data_version()) != version; };
  CHECK_FALSE(changed());
  // An older petlab writes.
  SQLite::Database older(file.string(), SQLite::OPEN_READWRITE);
  older.exec("UPDATE trials SET cancelled = 0 WHERE trial_id = 't3'");
  CHECK(changed());
  CHECK_FALSE(changed());
  CHECK_FALSE(reader.trial_facts(std::vector<std::string>{"t3"}).at(0).cancelled);
  Store store(file);
  CHECK(changed());
  Batch batch = store.begin();
  renew(batch, "t1", {2, true, "wrong", 7});
  record_remark(batch, {"t2", ""}, {protocol::Remark::What::tag, "good", 5});
  batch.commit();
  CHECK(changed());
  CHECK(reader.trial_facts(std::vector<std::string>{"t1"}).at(0).discarded_after == 2);
  CHECK(remarks_of(reader, {"t2", ""}).tags == Lines{"good"});
  CHECK(scores.values_of(word_named("tag"), 9) == Lines{"good"});
}

TEST_CASE("Programs that have an old database open keep working while it is updated", "[results]") {
  for (const char* journal : {"WAL", "DELETE"}) {
    INFO(journal);
    const TempDir folder;
    const auto file = old_database(folder, "last_of_version_1");
    SQLite::Database writer(file.string(), SQLite::OPEN_READWRITE);
    writer.exec(fmt::format("PRAGMA journal_mode = {}", journal));
    SQLite::Statement record(writer,
                             "INSERT INTO metric_values VALUES (?1, ?2, 40, 1, 0.5) ON CONFLICT "
                             "DO NOTHING");
    SQLite::Database reader(file.string(), SQLite::OPEN_READONLY);
    const bool wal = std::string(journal) == "WAL";
    if (wal) {
      reader.exec("BEGIN");
      CHECK(reader.execAndGet("PRAGMA user_version").getInt() == 1);
    }
    OpenOptions options;
    options.journal = wal ? OpenOptions::Journal::wal : OpenOptions::Journal::rollback;
    const Store store(file, options);
    if (wal) {
      // Its transaction reads one consistent state.
      CHECK(reader.execAndGet("PRAGMA user_version").getInt() == 1);
      reader.exec("COMMIT");
    }
    CHECK(reader.execAndGet("PRAGMA user_version").getInt() == kDatabaseVersion);
    CHECK(reader.execAndGet("SELECT count(*) FROM results").getInt() == 3);
    record.bind(1, 2);
    record.bind(2, 99);
    record.exec();
    writer.exec("UPDATE attempts SET event_outcome = 'failed' WHERE number = 1");
    CHECK(store.read().trial_facts(std::vector<std::string>{"t1"}).at(0).attempts.size() == 2);
    CHECK(rows(file, "SELECT count(*) FROM metric_values WHERE step = 40") == Lines{"1"});
  }
}

TEST_CASE("An update removes no table or column that an older program writes to", "[results]") {
  for (const char* schema : kSchemas) {
    INFO(schema);
    const TempDir folder;
    const auto file = old_database(folder, schema);
    const auto writable = [&](const std::filesystem::path& of) {
      SQLite::Database database(of.string(), SQLite::OPEN_READONLY);
      SQLite::Statement rows(database,
                             "SELECT m.name || ' ' || c.name FROM sqlite_schema m, "
                             "pragma_table_info(m.name) c WHERE m.type = 'table'");
      std::set<std::string> all;
      while (rows.executeStep()) all.insert(rows.getColumn(0).getString());
      return all;
    };
    const std::set<std::string> before = writable(file);
    { const Store store(file); }
    const std::set<std::string> after = writable(file);
    CHECK(std::includes(after.begin(), after.end(), before.begin(), before.end()));
    CHECK(writable(fmt::format("{}.v{}.bak", file.string(), version_of(schema))) == before);
  }
}

}  // namespace petlab::results
