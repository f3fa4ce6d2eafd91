#include "reports/running.h"

#include <fmt/format.h>

#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "results/attempt_events.h"
#include "tests/reports/make_database.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

namespace petlab::reports {
namespace {

RunningTrial training(std::int64_t points, std::int64_t of) {
  RunningTrial trial;
  trial.trial_id = "0123456789abcdef";
  trial.sweep = "s";
  trial.step = points;
  trial.of = of;
  trial.loss = 1;
  for (std::int64_t step = 1; step <= points; ++step) {
    results::LossPoint point;
    point.step = step;
    point.loss = 2.0 - 1.0 / static_cast<double>(step + points);
    trial.curve.push_back(point);
  }
  if (points > 0) trial.curve.back().loss = 1;
  return trial;
}

/// The points of the curve in the page.
std::vector<std::string> drawn_points(const RunningTrial& trial) {
  Now now;
  now.running.push_back(trial);
  const std::string html = to_html(now, 0);
  std::smatch found;
  std::vector<std::string> points;
  if (!std::regex_search(html, found, std::regex("<polyline points=\"([^\"]*)\""))) return points;
  std::istringstream words(found[1]);
  for (std::string word; words >> word;) points.push_back(word);
  return points;
}

}  // namespace

TEST_CASE("A curve includes its first and last points at any length", "[reports]") {
  CHECK(drawn_points(training(0, 10)).empty());
  CHECK(drawn_points(training(1, 10)).empty());
  for (const std::int64_t count : {2, 3, 127, 128, 129, 130, 255, 256, 257, 512, 1000}) {
    INFO(count);
    const auto points = drawn_points(training(count, 2 * count));
    REQUIRE(points.size() >= 2);
    CHECK(points.size() <= 128);
    CHECK(points.size() >= std::min<std::size_t>(static_cast<std::size_t>(count), 64));
    CHECK(points.front().starts_with(fmt::format("{:.1f},", 160.0 / static_cast<double>(count))));
    // The last point is the lowest, and halfway to the last step.
    CHECK(points.back() == "160.0,96.0");
  }
}

TEST_CASE("A curve shows its ends and extremes as labels and skips losses that are not finite",
          "[reports]") {
  RunningTrial trial = training(4, 8);
  trial.curve[0].loss = 3;
  trial.curve[1].loss.reset();
  trial.curve[2].loss = 9;
  trial.curve[3].loss = 0.5;
  Now now;
  now.running.push_back(trial);
  CHECK(to_html(now, 0).find("aria-label=\"loss from 3 at step 1 to 0.5 at step 4, between 0.5 and "
                             "9\"") != std::string::npos);
  CHECK(drawn_points(trial).size() == 3);
  // Steps beyond the announced number stay inside the frame.
  trial.of = 2;
  CHECK(drawn_points(trial).back() == "320.0,96.0");
  // A constant loss is drawn in the middle.
  for (auto& point : trial.curve) point.loss = 7;
  CHECK(drawn_points(trial).back() == "320.0,48.0");
}

TEST_CASE("Running trials beyond the limit are only counted", "[reports]") {
  const testing::TempDir folder;
  const auto file = folder.path() / "petlab.db";
  std::vector<testing::MadeTrial> trials;
  for (std::int64_t seed = 1; seed <= 30; ++seed) {
    trials.push_back({.id = fmt::format("{:016x}", seed),
                      .variant = fmt::format("v{}", seed),
                      .seed = seed,
                      .outcome = seed == 3 ? results::Outcome::crashed : results::Outcome::open});
  }
  testing::make_database(file, "s", trials);
  {
    // Adds a second variant in the same sweep, and one in a sweep that did not start the trial.
    results::Store store(file);
    results::SweepRow row = *store.read().sweep("s");
    row.members.push_back({trials[0].id, "again"});
    results::Batch batch = store.begin();
    batch.record_sweep(row, {}, 2);
    row.name = "other";
    row.members = {{trials[0].id, "elsewhere"}};
    batch.record_sweep(row, {}, 2);
    const std::vector<results::LossReport> losses = {{1, 3, 0.5}, {2, 4, std::nullopt}};
    results::record_progress(batch, store.read().attempt_facts(trials[1].id, 1)->attempt,
                             {4, 8, std::nullopt}, 100, losses);
    batch.commit();
  }
  const results::Reader reader(file);
  const results::LossReader losses(file);
  const Now now = running_now(reader, losses, testing::assume_alive);
  CHECK(now.running.size() == 24);
  CHECK(now.others == 5);
  REQUIRE(now.running.size() > 1);
  CHECK(now.running[0].variant == "v1, again");
  CHECK(now.running[1].step == 4);
  CHECK(now.running[1].curve.size() == 2);
  CHECK(now.running[2].trial_id == trials[3].id);
  const std::string html = to_html(now, 170);
  CHECK(html.find("<h2>Running now: 29</h2>") != std::string::npos);
  CHECK(html.find("and 5 more") != std::string::npos);
  CHECK(html.find("step 4 of 8 · the loss is not finite") != std::string::npos);
  CHECK(html.find("silent for 70 s") != std::string::npos);
  CHECK(running_now(reader, losses, testing::assume_alive, 29).others == 0);
  // Attempts of dead workers are neither shown nor counted.
  const Now living = running_now(reader, losses, [&](const results::AttemptFacts& attempt) {
    return attempt.attempt.trial_id != trials[0].id;
  });
  CHECK(living.running.size() == 24);
  CHECK(living.others == 4);
  CHECK(living.running.at(0).trial_id == trials[1].id);
}

}  // namespace petlab::reports
