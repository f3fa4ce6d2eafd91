#include "reports/load.h"

#include "questions/conditions.h"
#include "reports/builtin.h"
#include "reports/error.h"
#include "reports/render.h"
#include "reports/report.h"
#include "reports/selection.h"
#include "results/attempt_events.h"
#include "results/decisions.h"
#include "results/remarks.h"
#include "tests/reports/make_data.h"
#include "tests/reports/make_database.h"
#include "tests/reports/make_report.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

namespace petlab::reports {
namespace {

using results::Outcome;
using testing::loaded;
using testing::make_database;
using testing::TempDir;

std::vector<std::string> chosen(const Definition& definition, const std::vector<std::string>& named,
                                const std::filesystem::path& file) {
  return choose_sweeps(definition, named, file, results::Reader(file).sweep_names());
}

TEST_CASE("A cell shows the last reported value, whether or not every step is loaded",
          "[reports]") {
  const TempDir folder;
  const auto file = folder.path() / "p.db";
  {
    results::Store store(file);
    results::Batch batch = store.begin();
    const testing::MadeTrial trial{.id = "t1", .variant = "a"};
    batch.record_sweep(
        {"s", "", "s.yaml", "", {{trial.id, trial.variant}}},
        std::vector<results::TrialRow>{{trial.id, testing::config_of(trial), "", {}, {}}}, 1);
    results::NewAttempt wanted;
    wanted.trial_id = trial.id;
    const auto attempt = std::get<results::AttemptRef>(batch.begin_attempt(wanted));
    const results::Series series = results::series_in(batch, "test", "cola", "accuracy");
    // Training ends at step 20 and then restores the best checkpoint, that of step 10.
    results::append_metrics(batch, attempt,
                            std::vector<results::MetricReport>{
                                {1, 10, series, 0.7}, {2, 20, series, 0.6}, {3, 10, series, 0.9}});
    results::set_cursor(batch, attempt, {100, 4, 20, true});
    results::record_finished(batch, attempt, {}, 2);
    batch.commit();
  }
  const Definition definition = testing::definition(
      "table: {rows: [{each: variant}], columns: [{key: a, where: {name: accuracy}}]}\n");
  for (const bool every_step : {false, true}) {
    const Dataset data = loaded(file, {"s"}, {}, every_step);
    CHECK(data.scores.size() == (every_step ? 3 : 1));
    CHECK(*testing::table_of(definition, data, {}).cells[0][0].measured.mean == Approx(90));
  }
  const Definition by_step = testing::definition(
      "table: {rows: [{each: variant}], columns: [{key: a, where: {name: accuracy, step: 10}}]}\n");
  CHECK(*testing::table_of(by_step, loaded(file, {"s"}, {}, true), {}).cells[0][0].measured.mean ==
        Approx(90));
}

TEST_CASE("A cell shows the value at the selected step, even if every step is loaded",
          "[reports]") {
  const TempDir folder;
  const auto file = folder.path() / "p.db";
  {
    results::Store store(file);
    results::Batch batch = store.begin();
    const testing::MadeTrial trial{.id = "t1", .variant = "a"};
    batch.record_sweep(
        {"s", "", "s.yaml", "", {{trial.id, trial.variant}}},
        std::vector<results::TrialRow>{{trial.id, testing::config_of(trial), "", {}, {}}}, 1);
    results::NewAttempt wanted;
    wanted.trial_id = trial.id;
    const auto attempt = std::get<results::AttemptRef>(batch.begin_attempt(wanted));
    const results::Series validation = results::series_in(batch, "validation", "cola", "accuracy");
    const results::Series test = results::series_in(batch, "test", "cola", "accuracy");
    results::append_metrics(
        batch, attempt,
        std::vector<results::MetricReport>{
            {1, 1, validation, 0.9}, {2, 2, validation, 0.61}, {3, 1, test, 0.8}});
    results::set_cursor(batch, attempt, {100, 4, 20, true});
    results::record_finished(batch, attempt, {}, 2);
    batch.commit();
  }
  const auto mean_where = [&](const std::string& step, bool every_step) {
    const Definition definition = testing::definition(
        "table: {rows: [{each: variant}], columns: [{key: a, where: {split: "
        "validation, name: accuracy" +
        step + "}}]}\n");
    const Dataset data = loaded(file, {"s"}, {}, every_step);
    return *testing::table_of(definition, data, {}).cells[0][0].measured.mean;
  };
  CHECK(mean_where("", false) == Approx(90));
  CHECK(mean_where("", true) == Approx(90));
  CHECK(mean_where(", step: 2", true) == Approx(61));
}

TEST_CASE("Trials are loaded in the order of their plan with their states", "[reports]") {
  const TempDir folder;
  const auto file = folder.path() / "p.db";
  make_database(file, "s",
                {{.id = "t9", .variant = "b", .scores = {{"f1", 0.5}, {"mcc", std::nullopt}}},
                 {.id = "t1", .variant = "a", .seed = 7, .task = "rte"},
                 {.id = "t2", .variant = "a", .seed = 2, .outcome = Outcome::failed},
                 {.id = "t3", .variant = "a", .seed = 3, .outcome = Outcome::crashed},
                 {.id = "t4", .variant = "a", .seed = 4, .outcome = Outcome::open}});
  const Dataset data = loaded(file, {"s"}, {});
  REQUIRE(data.trials.size() == 5);
  const Trial& first = data.trials[0];
  CHECK(first.id == "t9");
  CHECK(first.variant == "b");
  CHECK(first.state == "done");
  CHECK(first.numerics == R"({"version":"1"})");
  CHECK_FALSE(first.stale);
  CHECK(field_of(first, "module_kind") == results::Value("adapter"));
  CHECK(field_of(first, "module_share") == results::Value(std::int64_t{0}));
  CHECK(field_of(first, "training_learning_rate") == results::Value(1e-3));
  CHECK(field_of(first, "user.note") == results::Value("x"));
  CHECK(field_of(first, "bls_bits") == results::Value(6400.0));
  CHECK(field_of(first, "train_seconds") == results::Value(12.5));
  CHECK(field_of(first, "training_label_smoothing") == results::Value(0.0));
  CHECK(field_of(first, "decoding_beams") == results::Value());
  CHECK(data.configuration.contains("training_epochs"));
  CHECK_FALSE(data.configuration.contains("bls_bits"));
  CHECK(data.trials[1].state == "new");
  CHECK(data.trials[1].seed == 7);
  CHECK(data.trials[1].tasks == std::vector<std::string>{"rte"});
  CHECK(data.trials[1].fields.at("bls_bits") == results::Value(3200.0));
  CHECK(data.trials[2].state == "failed");
  CHECK(data.trials[3].state == "interrupted");
  CHECK(data.trials[4].state == "running");
  REQUIRE(data.scores.size() == 2);
  CHECK(data.scores[0].trial == 0);
  CHECK(data.scores[0].series->split == "test");
  CHECK(data.scores[0].series->task == "cola");
  CHECK(data.scores[0].series->name == "f1");
  CHECK(data.scores[0].value == 0.5);
  CHECK_FALSE(data.scores[1].value);
}

TEST_CASE("The database applies the report's selection of metrics", "[reports]") {
  const TempDir folder;
  const auto file = folder.path() / "p.db";
  make_database(file, "s", {{.id = "t", .scores = {{"f1", 0.5}, {"mcc", 0.4}}}});
  const Selection only_f1 = {{questions::one_of("name", {results::Value("f1")})}};
  CHECK(loaded(file, {"s"}, only_f1).scores.size() == 1);
  const Selection validation = {{questions::one_of("split", {results::Value("validation")})}};
  CHECK(loaded(file, {"s"}, validation).scores.empty());
}

TEST_CASE("A trial is stale if later attempts had other numerics or other data", "[reports]") {
  const TempDir folder;
  const auto file = folder.path() / "p.db";
  make_database(file, "s",
                {{.id = "old", .scores = {{"f1", 0.1}}, .numerics = "1", .time = 10},
                 {.id = "new", .seed = 2, .scores = {{"f1", 0.1}}, .numerics = "2", .time = 20},
                 {.id = "other_data",
                  .seed = 3,
                  .task = "rte",
                  .scores = {{"f1", 0.1}},
                  .numerics = "2",
                  .data_digest = "sha256:1",
                  .time = 20},
                 {.id = "newer_data",
                  .seed = 4,
                  .task = "rte",
                  .scores = {{"f1", 0.1}},
                  .numerics = "2",
                  .data_digest = "sha256:2",
                  .time = 30}});
  const Dataset data = loaded(file, {"s"}, {});
  CHECK(data.trials[0].stale);
  CHECK_FALSE(data.trials[1].stale);
  CHECK(data.trials[2].stale);
  CHECK_FALSE(data.trials[3].stale);
}

TEST_CASE("A rerun trial shows the attempt that has its scores", "[reports]") {
  const TempDir folder;
  const auto file = folder.path() / "p.db";
  make_database(file, "s",
                {{.id = "again", .scores = {{"f1", 0.1}}, .numerics = "1", .time = 10},
                 {.id = "other", .seed = 2, .scores = {{"f1", 0.1}}, .numerics = "2", .time = 20}});
  CHECK(loaded(file, {"s"}, {}).trials[0].stale);
  {
    results::Store store(file);
    results::Batch batch = store.begin();
    results::allow_retry(batch, "again", 1);
    results::NewAttempt wanted;
    wanted.trial_id = "again";
    wanted.sweep = "s";
    wanted.owner = "test";
    wanted.planned_from = store.read().trial_facts(std::vector<std::string>{"again"}).at(0).changes;
    wanted.time = 30;
    const auto attempt = std::get<results::AttemptRef>(batch.begin_attempt(wanted));
    protocol::Started started;
    started.worker = "petlab-trainer";
    started.numerics = R"({"version":"2"})";
    started.data_digests = {{"cola", "sha256:d"}};
    results::record_started(batch, attempt, started, 30);
    const std::vector<results::MetricReport> metrics = {
        {1, 30, results::series_in(batch, "test", "cola", "f1"), 0.9}};
    results::append_metrics(batch, attempt, metrics);
    results::set_cursor(batch, attempt, {100, 3, 9, true});
    protocol::Finished finished;
    finished.step = 30;
    finished.train_seconds = 99.5;
    results::record_finished(batch, attempt, finished, 31);
    batch.commit();
  }
  const Dataset data = loaded(file, {"s"}, {});
  const Trial& trial = data.trials[0];
  CHECK_FALSE(trial.stale);
  CHECK(trial.numerics == R"({"version":"2"})");
  CHECK(trial.fields.at("attempt") == results::Value(std::int64_t{2}));
  CHECK(trial.fields.at("train_seconds") == results::Value(99.5));
  for (const Score& score : data.scores) {
    if (score.trial == 0) CHECK(*score.value == 0.9);
  }
}

TEST_CASE("Selections may have any words from the whole database and its metrics", "[reports]") {
  const TempDir folder;
  const auto file = folder.path() / "p.db";
  make_database(file, "s", {{.id = "t", .task = "mine", .scores = {}}});
  make_database(file, "other", {{.id = "u", .task = "theirs", .scores = {{"own_metric", 0.1}}}});
  const Selection validation = {{questions::one_of("split", {results::Value("validation")})}};
  const Dataset data = loaded(file, {"s"}, validation);
  CHECK(data.known_words.at("task") == std::set<std::string>{"mine", "theirs"});
  CHECK(data.known_words.at("split") ==
        std::set<std::string>{"progress", "test", "train", "validation"});
  CHECK(data.known_words.at("name").contains("own_metric"));
  CHECK(data.known_words.at("name").contains("accuracy"));
}

TEST_CASE("The sweep is the named one, the definition's, or the only one in the database",
          "[reports]") {
  const TempDir folder;
  const auto file = folder.path() / "p.db";
  Definition definition;
  definition.name = "r";
  { results::Store empty(file); }
  CHECK_THROWS_AS(chosen(definition, {}, file), Error);
  make_database(file, "one", {{.id = "t"}});
  CHECK(chosen(definition, {}, file) == std::vector<std::string>{"one"});
  make_database(file, "two", {{.id = "u"}});
  CHECK_THROWS_WITH(chosen(definition, {}, file),
                    file.string() +
                        " has 2 sweeps, report r shows one: name it with --sweep "
                        "(there are: one, two)");
  CHECK(chosen(definition, {"two"}, file) == std::vector<std::string>{"two"});
  definition.sweeps = {"tow"};
  CHECK_THROWS_WITH(chosen(definition, {}, file),
                    "report r is about sweep 'tow', which " + file.string() +
                        " does not have; did you mean two? (it has: one, two); run that sweep "
                        "first, or name another with --sweep");
}

TEST_CASE("A trial shared by two variants is in both rows", "[reports]") {
  const TempDir folder;
  const auto file = folder.path() / "p.db";
  make_database(file, "s", {{.id = "t", .variant = "a", .scores = {{"f1", 0.5}}}});
  {
    results::Store store(file);
    results::Batch batch = store.begin();
    batch.record_sweep({"s", "", "s.yaml", "d", {{"t", "a"}, {"t", "b"}}}, {}, 2);
    batch.commit();
  }
  const Dataset data = loaded(file, {"s"}, {});
  CHECK(data.trials.size() == 2);
  const testing::MadeTable table =
      testing::table_of(builtin_report("sweep"), data, published_numbers());
  REQUIRE(table.rows.size() == 2);
  CHECK(table.cells[0].back().measured.mean == 50.0);
  CHECK(table.cells[1].back().measured.mean == 50.0);
  CHECK(table.progress[0].trials == 1);
}

TEST_CASE("A report does not depend on the order in which trials finished", "[reports]") {
  const TempDir folder;
  std::vector<testing::MadeTrial> trials;
  for (const std::string variant : {"b", "a"}) {
    for (const std::int64_t seed : {1, 2, 3}) {
      trials.push_back({.id = variant + std::to_string(seed),
                        .variant = variant,
                        .seed = seed,
                        .scores = {{"f1", 0.1 * static_cast<double>(seed)}, {"accuracy", 0.7}}});
    }
  }
  make_database(folder.path() / "1.db", "s", trials);
  // The same plan with results recorded in reverse order.
  std::vector<testing::MadeTrial> planned = trials;
  for (testing::MadeTrial& trial : planned) trial.scores.clear();
  make_database(folder.path() / "2.db", "s", planned);
  std::vector<testing::MadeTrial> reversed(trials.rbegin(), trials.rend());
  make_database(folder.path() / "2.db", "other", reversed);
  const auto html = [&](const std::string& name) {
    return to_html(make_report(builtin_report("sweep"), loaded(folder.path() / name, {"s"}, {}),
                               published_numbers()));
  };
  CHECK(html("1.db") == html("2.db"));
}

TEST_CASE("A report can select by the attempt that counts, by tags and by user keys", "[reports]") {
  const TempDir folder;
  const auto file = folder.path() / "p.db";
  make_database(file, "s",
                {{.id = "t1", .seed = 1, .scores = {{"f1", 0.25}}},
                 {.id = "t2", .seed = 2, .scores = {{"f1", 0.75}}}});
  {
    results::Store store(file);
    results::Batch batch = store.begin();
    for (const char* tag : {"good", "a,b"}) {
      results::record_remark(batch, {"t1", ""}, {protocol::Remark::What::tag, tag, 1});
    }
    batch.commit();
  }
  const auto seeds = [&](const std::string& where) {
    const std::vector<Definition> definitions = {testing::definition(
        "where: " + where + "\ntable: {rows: [{each: seed}], columns: [{key: c, value: seed}]}\n")};
    const Dataset data =
        load_dataset(results::Reader(file), {"s"}, wanted_by(definitions), testing::assume_alive);
    std::string found;
    for (const Head& row : testing::table_of(definitions[0], data, {}).rows) found += row.key;
    return found;
  };
  CHECK(seeds("{worker: petlab-trainer}") == "12");
  CHECK(seeds("{worker: other}").empty());
  CHECK(seeds("{attempt: 1, user_note: x}") == "12");
  CHECK(seeds("{user.note: y}").empty());
  CHECK(seeds("{tag: good}") == "1");
  CHECK(seeds("{tag: 'a,b'}") == "1");
  CHECK(seeds("{tag: b}").empty());
  CHECK(seeds("'tag!=good'") == "2");
  CHECK(seeds("{tag: ~}") == "2");
  CHECK(seeds("'trial_id<=t1'") == "1");
}

TEST_CASE("Numbers of examples are loaded only for reports that show them", "[reports]") {
  const TempDir folder;
  const auto file = folder.path() / "p.db";
  const results::Examples examples = {{"cola", {{"train", 8551}, {"test", 522}}}};
  make_database(file, "s",
                {{.id = "t1", .seed = 1, .scores = {{"f1", 0.5}}, .examples = examples},
                 {.id = "t2", .seed = 2, .scores = {{"f1", 0.5}}, .examples = examples},
                 {.id = "t3", .seed = 3, .scores = {{"f1", 0.5}}}});
  const auto load = [&](const std::string& columns) {
    const std::vector<Definition> definitions = {
        testing::definition("table:\n  rows: [{key: a}]\n  columns: [" + columns + "]\n")};
    return load_dataset(results::Reader(file), {"s"}, wanted_by(definitions),
                        testing::assume_alive);
  };
  const Dataset with = load("{key: c, value: examples, where: {split: train}}");
  REQUIRE(with.trials.size() == 3);
  CHECK(*with.trials[0].examples == examples);
  CHECK(with.trials[1].examples == with.trials[0].examples);
  CHECK(with.trials[2].examples == nullptr);
  const Dataset without = load("{key: c, where: {name: f1}}, {key: d, value: seed}");
  CHECK(without.trials[0].examples == nullptr);
  CHECK(without.scores.size() == 3);
}

}  // namespace
}  // namespace petlab::reports
