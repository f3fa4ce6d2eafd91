#include "reports/trial_record.h"

#include <nlohmann/json.hpp>

#include "reports/load.h"
#include "reports/render.h"
#include "reports/thinning.h"
#include "results/attempt_events.h"
#include "tests/reports/make_data.h"
#include "tests/reports/make_database.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

namespace petlab::reports {
namespace {

using testing::DataMaker;
using testing::MadeTrial;

const char kByVariant[] = R"(where: {split: test}
table:
  rows: [{each: variant}]
  columns:
    - {key: acc, where: {name: accuracy}}
    - {key: both, average_over: [{task: x, name: accuracy}, {task: y, name: accuracy}]}
)";

TEST_CASE("A cell lists its trials, even those without a value", "[reports]") {
  DataMaker make;
  const std::size_t first = make.trial("a", 1, "x");
  make.trial("a", 2, "x");
  make.trial("b", 1, "z");
  make.score(first, "accuracy", 0.5);
  const Report report = make_report(testing::definition(kByVariant), make.data, {});
  const auto& table = std::get<Table>(report.sections.front());
  CHECK(*table.cells[0][0].trials.ids == std::vector<std::string>{"t0", "t1"});
  CHECK(table.cells[0][0].measured.n() == 1);
  CHECK(*table.cells[1][0].trials.ids == std::vector<std::string>{"t2"});
  // An average lists only the trials of its parts.
  CHECK(*table.cells[0][1].trials.ids == std::vector<std::string>{"t0", "t1"});
  CHECK(table.cells[1][1].trials.ids == nullptr);
}

TEST_CASE("The trials of a report are listed once, each with its details", "[reports]") {
  const testing::TempDir folder;
  const auto file = folder.path() / "petlab.db";
  testing::make_database(file, "s",
                         {{.id = "aa", .variant = "a", .scores = {{"accuracy", 0.5}}},
                          {.id = "bb", .variant = "b", .outcome = results::Outcome::failed},
                          {.id = "cc", .variant = "c"}});
  const Dataset data = testing::loaded(file, {"s"}, {});
  const Report report = make_report(
      testing::definition("sweep: s\nwhere: {split: test}\ntable:\n  rows: [{each: variant}]\n"
                          "  columns: [{key: acc, where: {name: accuracy}}, {key: f1, where: "
                          "{name: f1}}]\n"),
      data, {});
  std::vector<TrialRecord> records = trial_records(report, data);
  REQUIRE(records.size() == 3);
  CHECK(records[0].id == "aa");
  CHECK(records[0].state == "done");
  CHECK(records[0].members == std::vector<std::string>{"s: a"});
  CHECK(records[0].fields.at("module_bottleneck") == "16");
  CHECK(records[0].fields.at("tasks") == "cola");
  CHECK(records[0].fields.at("seed") == "1");
  REQUIRE(records[0].attempts.size() == 1);
  CHECK(records[0].attempts[0].outcome == "finished");
  CHECK(records[0].attempts[0].seconds == 1.0);
  CHECK(records[1].state == "failed");
  CHECK(records[1].attempts[0].reason == "no good");
  CHECK(records[2].attempts.empty());

  // Logs of unfinished trials are included up to the limit.
  std::vector<std::string> read_logs;
  const auto log = [&](const std::string& trial, std::int64_t attempt) {
    read_logs.push_back(trial);
    return trial + std::to_string(attempt) + " one\n\x1b[31mtwo\n";
  };
  add_logs(records, log, {.log_bytes = 10});
  CHECK(records[1].attempts[0].log.empty());
  add_logs(records, log);
  CHECK(records[1].attempts[0].log == std::vector<std::string>{"bb1 one", "\uFFFD[31mtwo"});
  CHECK(records[0].attempts[0].log.empty());
  CHECK(read_logs == std::vector<std::string>{"bb", "bb"});

  const auto json = nlohmann::json::parse(trials_json(records));
  CHECK(json["same"]["module_bottleneck"] == "16");
  // The first trial has a measured size; the others share one configuration.
  REQUIRE(json["configurations"].size() == 2);
  CHECK(json["configurations"][0] == nlohmann::json{{"bls_bits", "6400"}});
  CHECK(json["trials"]["bb"]["configuration"] == json["trials"]["cc"]["configuration"]);
  CHECK(json["attempt"]["outcome"] == "finished");
  CHECK_FALSE(json["trials"]["aa"]["attempts"][0].contains("outcome"));
  CHECK(json["trials"]["bb"]["attempts"][0]["outcome"] == "failed");
  CHECK(json["trials"]["bb"]["attempts"][0]["reason"] == "no good");
  CHECK(json["trials"]["bb"]["attempts"][0]["log"][0] == "bb1 one");
  CHECK_FALSE(json["trials"]["cc"].contains("attempts"));
}

// Creates a database in which trial "aa" was validated at each of `steps` steps.
std::filesystem::path validated(const testing::TempDir& folder, std::int64_t steps) {
  const auto file = folder.path() / "petlab.db";
  results::Store store(file);
  results::Batch batch = store.begin();
  const MadeTrial trial{.id = "aa", .variant = "a"};
  batch.record_sweep(
      {"s", "", "s.yaml", "", {{trial.id, trial.variant}}},
      std::vector<results::TrialRow>{{trial.id, testing::config_of(trial), "", {}, {}}}, 1);
  results::NewAttempt wanted;
  wanted.trial_id = trial.id;
  const auto attempt = std::get<results::AttemptRef>(batch.begin_attempt(wanted));
  std::vector<results::MetricReport> rows;
  const results::Series series = results::series_in(batch, "validation", "cola", "accuracy");
  for (std::int64_t step = 1; step <= steps; ++step) {
    rows.push_back({step, step, series, step == 500 ? 9.0 : 0.001 * static_cast<double>(step % 7)});
  }
  rows.push_back({steps + 1, steps, results::series_in(batch, "test", "cola", "accuracy"), 0.5});
  results::append_metrics(batch, attempt, rows);
  results::set_cursor(batch, attempt, {100, steps + 2, steps + 2, true});
  results::record_finished(batch, attempt, {}, 2);
  batch.commit();
  return file;
}

TEST_CASE("Learning curves have the values reported at several steps, thinned", "[reports]") {
  const testing::TempDir folder;
  const auto file = validated(folder, 1000);
  std::vector<TrialRecord> records(2);
  records[0].id = "aa";
  records[1].id = "unknown";
  add_curves(records, file);
  REQUIRE(records[0].curves.size() == 1);
  const LearningCurve& curve = records[0].curves[0];
  CHECK(curve.split == "validation");
  CHECK(curve.name == "accuracy");
  CHECK(curve.points.size() <= PageRoom::kCurvePoints);
  CHECK(curve.points.front().first == 1);
  CHECK(curve.points.back().first == 1000);
  // The one outlier is kept.
  CHECK(std::any_of(curve.points.begin(), curve.points.end(),
                    [](const auto& point) { return point == std::pair(std::int64_t{500}, 9.0); }));
  CHECK(records[1].curves.empty());
  const auto json = nlohmann::json::parse(trials_json(records));
  CHECK(json["trials"]["aa"]["curves"][0]["points"].size() == 2 * curve.points.size());

  std::vector<TrialRecord> beyond(1);
  beyond[0].id = "aa";
  add_curves(beyond, file, {.metric_rows = 999});
  CHECK(beyond[0].curves.empty());
}

TEST_CASE("A thinned curve keeps its ends and outliers", "[reports]") {
  const std::vector<double> few = {1, 2, 3};
  CHECK(thinned(few, 4) == std::vector<std::size_t>{0, 1, 2});
  std::vector<double> many(1000, 0.0);
  many[400] = 5;
  many[401] = -5;
  for (const std::size_t most : {4, 10, 101}) {
    const std::vector<std::size_t> kept = thinned(many, most);
    CHECK(kept.size() <= most);
    CHECK(kept.front() == 0);
    CHECK(kept.back() == 999);
    CHECK(std::is_sorted(kept.begin(), kept.end()));
    CHECK(std::count(kept.begin(), kept.end(), 400u) == 1);
    CHECK(std::count(kept.begin(), kept.end(), 401u) == 1);
  }
}

TEST_CASE("A page lists the trials of its cells, merged over its reports", "[reports]") {
  DataMaker make;
  make.score(make.trial("a</script>", 1, "x"), "accuracy", 0.5);
  Report one = make_report(testing::definition(kByVariant), make.data, {});
  one.name = "one";
  one.trials = trial_records(one, make.data);
  Report two = one;
  two.name = "two";
  two.trials[0].members = {"other: a"};
  const Report all = joined_reports("all", "", {one, two});
  REQUIRE(all.trials.size() == 1);
  CHECK(all.trials[0].members == std::vector<std::string>{"s: a</script>", "other: a"});
  const std::string html = to_html(all);
  CHECK(html.find("a</script>") == std::string::npos);
  CHECK(html.find("id=\"two/a&lt;%2Fscript&gt;/acc\" class=\"number\" data-trials=\"t0\" "
                  "data-value=\"50\"") != std::string::npos);
}

}  // namespace
}  // namespace petlab::reports
