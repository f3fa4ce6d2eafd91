#include "results/loss_curve.h"

#include <cmath>
#include <random>

#include "results/attempt_events.h"
#include "results/decisions.h"
#include "tests/results/helpers.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

namespace petlab::results {
namespace {

using testing::TempDir;

struct CurveFixture {
  TempDir folder;
  std::filesystem::path file = folder.path() / "petlab.db";
  Store store{file};

  AttemptRef attempt(const std::string& trial, std::int64_t number,
                     std::optional<protocol::Resume> resume = {}) {
    Batch batch = store.begin();
    batch.record_trial(trial_row(trial));
    NewAttempt wanted = request(trial);
    wanted.resume = std::move(resume);
    const AttemptRef result = batch.record_attempt(wanted, number);
    batch.commit();
    return result;
  }
  /// Records the reports in batches of `batch_size`.
  void report(const AttemptRef& attempt, std::span<const LossReport> reports,
              std::size_t batch_size) {
    while (!reports.empty()) {
      const auto some = reports.first(std::min(batch_size, reports.size()));
      reports = reports.subspan(some.size());
      Batch batch = store.begin();
      record_progress(batch, attempt, {some.back().step, 9, some.back().loss}, 1, some);
      batch.commit();
    }
  }
};

/// Reports of `every` steps each, after `first_step`. Each loss is the number of its last step.
std::vector<LossReport> reports(std::int64_t count, std::int64_t every = 1,
                                std::int64_t first_seq = 1, std::int64_t first_step = 0) {
  std::vector<LossReport> result;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t step = first_step + (i + 1) * every;
    result.push_back({first_seq + i, step, static_cast<double>(step)});
  }
  return result;
}

}  // namespace

TEST_CASE("Losses are kept one by one while there are few", "[results]") {
  CurveFixture f;
  const AttemptRef attempt = f.attempt("t", 1);
  f.report(attempt, reports(512, 5), 7);
  const auto points = LossReader(f.file).of_trial("t");
  REQUIRE(points.size() == 512);
  CHECK(points[0] == LossPoint{1, 1, 5, 5, 1, 5.0});
  CHECK(points[511] == LossPoint{1, 512, 2560, 5, 1, 2560.0});
  CHECK(LossReader(f.file).of_trial("none").empty());
}

TEST_CASE(
    "More losses become means of two, four or eight steps, so the number of points is limited",
    "[results]") {
  CurveFixture f;
  const AttemptRef attempt = f.attempt("t", 1);
  f.report(attempt, reports(513), 100);
  auto points = LossReader(f.file).of_trial("t");
  REQUIRE(points.size() == 257);
  CHECK(points[0] == LossPoint{1, 2, 2, 2, 2, 1.5});
  CHECK(points[255] == LossPoint{1, 512, 512, 2, 2, 511.5});
  CHECK(points[256] == LossPoint{1, 513, 513, 1, 1, 513.0});
  f.report(attempt, reports(3487, 1, 514, 513), 3487);
  points = LossReader(f.file).of_trial("t");
  REQUIRE(points.size() == 500);
  CHECK(points[0] == LossPoint{1, 8, 8, 8, 8, 4.5});
  CHECK(points[499] == LossPoint{1, 4000, 4000, 8, 8, 3996.5});
}

TEST_CASE("A mean is over optimizer steps, not over reports", "[results]") {
  CurveFixture f;
  const AttemptRef attempt = f.attempt("t", 1);
  // 1, 3, 1, 3, … steps of losses 1, 2, 1, 2, …
  std::vector<LossReport> uneven;
  std::int64_t step = 0;
  for (std::int64_t i = 0; i < 514; ++i) {
    step += i % 2 == 0 ? 1 : 3;
    uneven.push_back({i + 1, step, i % 2 == 0 ? 1.0 : 2.0});
  }
  f.report(attempt, uneven, 1);
  const auto points = LossReader(f.file).of_trial("t");
  REQUIRE(points.size() == 257);
  for (const LossPoint& point : points) {
    CHECK(point.steps == 4);
    CHECK(point.loss == 1.75);
  }
}

TEST_CASE("The points do not depend on how reports are batched", "[results]") {
  CurveFixture f;
  std::mt19937 random(7);
  std::vector<LossReport> all;
  std::int64_t step = 0;
  for (std::int64_t i = 0; i < 2300; ++i) {
    step += 1 + static_cast<std::int64_t>(random() % 9);
    std::optional<double> loss = std::ldexp(static_cast<double>(random()), -30);
    if (i == 777) loss.reset();
    all.push_back({i + 1, step, loss});
  }
  const AttemptRef whole = f.attempt("whole", 1);
  f.report(whole, all, all.size());
  const auto wanted = LossReader(f.file).of_trial("whole");
  REQUIRE(wanted.size() == 288);
  CHECK(std::count_if(wanted.begin(), wanted.end(),
                      [](const LossPoint& point) { return !point.loss; }) == 1);
  for (const std::size_t batch_size : {1, 3, 511, 512, 513, 1024}) {
    const std::string trial = "t" + std::to_string(batch_size);
    f.report(f.attempt(trial, 1), all, batch_size);
    CHECK(LossReader(f.file).of_trial(trial) == wanted);
  }
}

TEST_CASE("The curve of a resumed attempt continues the curve of its parent", "[results]") {
  CurveFixture f;
  const AttemptRef first = f.attempt("t", 1);
  f.report(first, reports(10), 10);
  // The checkpoint of attempt 1 came after seq 6; attempt 2 never began to train.
  f.attempt("t", 2);
  const AttemptRef third = f.attempt("t", 3, protocol::Resume{1, 6, 6, "checkpoint/6"});
  f.report(third, reports(3, 2, 1, 6), 1);
  std::vector<std::int64_t> steps;
  std::vector<std::int64_t> lengths;
  const auto points = LossReader(f.file).of_trial("t");
  for (const LossPoint& point : points) {
    steps.push_back(point.step);
    lengths.push_back(point.steps);
  }
  CHECK(steps == std::vector<std::int64_t>{1, 2, 3, 4, 5, 6, 8, 10, 12});
  CHECK(lengths == std::vector<std::int64_t>{1, 1, 1, 1, 1, 1, 2, 2, 2});
  CHECK(points.back().attempt == 3);

  // A result's curve consists of the attempts that count, even if others were tried later.
  Batch batch = f.store.begin();
  record_finished(batch, first, {}, 9);
  batch.commit();
  CHECK(LossReader(f.file).of_trial("t").size() == 10);
  CHECK(LossReader(f.file).of_trial("t", 3) == points);
  CHECK(LossReader(f.file).of_trial("t", 2).empty());
}

TEST_CASE("An attempt before the result has its own curve", "[results]") {
  CurveFixture f;
  f.report(f.attempt("t", 1), reports(4), 4);
  const AttemptRef second = f.attempt("t", 2);
  f.report(second, reports(2), 2);
  Batch batch = f.store.begin();
  record_finished(batch, second, {}, 9);
  batch.commit();
  const LossReader reader(f.file);
  CHECK(reader.of_trial("t").size() == 2);
  CHECK(reader.of_trial("t", 1).size() == 4);
}

TEST_CASE("The curves of a sweep come in its order, each trial once, without hidden trials",
          "[results]") {
  CurveFixture f;
  for (const std::string id : {"a", "b", "c", "d"}) {
    const AttemptRef attempt = f.attempt(id, 1);
    if (id != "c") f.report(attempt, reports(2), 2);
  }
  Batch batch = f.store.begin();
  batch.record_sweep({"s", "", "", "", {{"d", "x"}, {"c", "x"}, {"b", "x"}, {"b", "y"}}}, {}, 1);
  batch.record_sweep({"other", "", "", "", {{"a", ""}}}, {}, 1);
  batch.commit();
  const LossReader reader(f.file);
  const auto of_sweep = [&](const std::string& sweep) {
    std::vector<TrialLosses> all;
    reader.each_of_sweep(sweep, [&](const TrialLosses& one) { all.push_back(one); });
    return all;
  };
  const auto all = of_sweep("s");
  REQUIRE(all.size() == 2);
  CHECK(all[0].trial_id == "d");
  CHECK(all[1].trial_id == "b");
  CHECK(all[1].points == reader.of_trial("b"));
  Batch hide = f.store.begin();
  set_hidden(hide, "d", Hiding{"wrong", 1});
  hide.commit();
  CHECK(of_sweep("s").size() == 1);
  CHECK(of_sweep("none").empty());
}

TEST_CASE("A forgotten attempt leaves no losses", "[results]") {
  CurveFixture f;
  const AttemptRef attempt = f.attempt("t", 1);
  f.report(attempt, reports(3), 3);
  Batch batch = f.store.begin();
  batch.forget_attempt(attempt);
  batch.commit();
  CHECK(rows(f.file, "SELECT count(*) FROM loss_points") == std::vector<std::string>{"0"});
}

}  // namespace petlab::results
