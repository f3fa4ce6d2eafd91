#include "results/scores.h"

#include <fmt/format.h>

#include <map>

#include "results/attempt_events.h"
#include "results/decisions.h"
#include "tests/results/helpers.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

namespace petlab::results {
namespace {

using testing::TempDir;
using Lines = std::vector<std::string>;

/// Trials of sweep "s" on task cola, with the given reports.
struct ScoredSweep {
  struct Reported {
    std::string split, task, name;
    std::int64_t step = 0;
    double value = 0;
  };
  TempDir folder;
  std::filesystem::path file = folder.path() / "petlab.db";
  Store store{file};
  SweepRow sweep{"s", "", "s.yaml", "", {}};

  /// Adds a finished trial. Each attempt resumed from the one before, of which the first `counted`
  /// metrics count. The events of a resumed attempt are numbered from `first_seq`, which the
  /// protocol leaves to the worker.
  void trial(const std::string& id, const std::vector<std::vector<Reported>>& attempts,
             std::int64_t counted = 0, std::int64_t first_seq = 1) {
    Batch batch = store.begin();
    batch.record_trial(trial_row(id));
    std::int64_t number = 0;
    for (const std::vector<Reported>& reported : attempts) {
      NewAttempt wanted = request(id);
      if (number > 0) wanted.resume = protocol::Resume{number, 1, counted, "c"};
      const AttemptRef attempt = batch.record_attempt(wanted, ++number);
      std::vector<MetricReport> rows;
      std::int64_t seq = number > 1 ? first_seq - 1 : 0;
      for (const Reported& one : reported) {
        rows.push_back(
            {++seq, one.step, series_in(batch, one.split, one.task, one.name), one.value});
      }
      append_metrics(batch, attempt, rows);
      protocol::Finished finished;
      finished.bls_bits = 77;
      if (number == static_cast<std::int64_t>(attempts.size())) {
        record_finished(batch, attempt, finished, 9);
      }
    }
    sweep.members.push_back({id, "a"});
    sweep.members.push_back({id, "b"});
    batch.record_sweep(sweep, {}, 1);
    batch.commit();
  }

  /// The scores of trials with a result: of all splits or one, of all trials or one.
  Lines ask(ScoreQuestion::Steps steps, const std::string& split = "",
            const std::string& only = "") const {
    ScoreQuestion question;
    question.where = {{word_named("sweep"), Condition::Op::equal, {"s"}}};
    question.fields = {word_named("bls_bits")};
    question.steps = steps;
    question.configurations = false;
    question.wants_series = [&](const SeriesName& name) {
      return split.empty() || name.split == split;
    };
    Lines lines;
    const Reader reader(file);
    ScoreReader(reader).each(question, [&](const ScoredTrial& trial) {
      if (!trial.has_result || (!only.empty() && trial.trial_id != only)) return;
      lines.push_back(fmt::format("{} {}", trial.trial_id, std::get<double>(trial.fields[0])));
      for (const Score& score : trial.scores()) {
        lines.push_back(fmt::format("{} {} {} {} {}{}", score.series->split, score.series->task,
                                    score.series->name, score.step, score.value.value_or(-1),
                                    score.counts ? "" : " (does not count)"));
      }
    });
    return lines;
  }
};

constexpr auto kSelected = ScoreQuestion::Steps::selected;
constexpr auto kEvery = ScoreQuestion::Steps::every;

std::vector<ScoredSweep::Reported> losses(std::int64_t count) {
  std::vector<ScoredSweep::Reported> reports;
  for (std::int64_t step = 1; step <= count; ++step) {
    reports.push_back({"train", "cola", "loss", step, 0.5});
  }
  return reports;
}

}  // namespace

TEST_CASE("The value that counts is found, whether it is at the end or long before it",
          "[results]") {
  ScoredSweep f;
  auto reported = losses(1);
  reported.push_back({"validation", "cola", "f1", 1, 0.25});
  reported.push_back({"validation", "cola", "f1", 2, 0.5});
  for (auto& loss : losses(300)) reported.push_back(loss);
  reported.push_back({"test", "cola", "f1", 2, 0.75});
  f.trial("t", {reported});
  CHECK(f.ask(kSelected) ==
        Lines{"t 77", "test cola f1 2 0.75", "train cola loss 2 0.5", "validation cola f1 2 0.5"});
  CHECK(f.ask(kSelected, "test") == Lines{"t 77", "test cola f1 2 0.75"});
  CHECK(f.ask(kEvery, "validation") ==
        Lines{"t 77", "validation cola f1 1 0.25 (does not count)", "validation cola f1 2 0.5"});
  CHECK(f.ask(kEvery, "train").size() == 302);
}

TEST_CASE("Values of the attempts that a result resumed from count as well", "[results]") {
  ScoredSweep f;
  f.trial("t",
          {{{"validation", "cola", "f1", 1, 0.1},
            {"validation", "cola", "mcc", 2, 0.2},
            {"validation", "cola", "f1", 3, 0.9}},
           {{"validation", "cola", "f1", 3, 0.3}}},
          2, 3);
  CHECK(f.ask(kSelected) == Lines{"t 77", "validation cola f1 3 0.3", "validation cola mcc 2 0.2"});
  CHECK(f.ask(kEvery) == Lines{"t 77", "validation cola f1 1 0.1 (does not count)",
                               "validation cola f1 3 0.3", "validation cola mcc 2 0.2"});
}

TEST_CASE("The value at the selected step counts, wherever it was reported", "[results]") {
  ScoredSweep f;
  for (const bool far : {false, true}) {
    std::vector<ScoredSweep::Reported> reported = {{"validation", "cola", "f1", 1, 0.5},
                                                   {"validation", "cola", "f1", 1, 0.9}};
    if (far) {
      for (const auto& loss : losses(300)) reported.push_back(loss);
    }
    reported.push_back({"validation", "cola", "f1", 2, 0.61});
    reported.push_back({"test", "cola", "f1", 1, 0.8});
    f.trial(far ? "far" : "near", {reported});
  }
  // The test score came first, and a later step has none.
  f.trial("early", {{{"test", "cola", "f1", 1, 0.8},
                     {"validation", "cola", "f1", 1, 0.9},
                     {"validation", "cola", "f1", 2, 0.61}}});
  f.trial("untested",
          {{{"validation", "cola", "f1", 1, 0.9}, {"validation", "cola", "f1", 2, 0.61}}});
  CHECK(f.ask(kSelected, "validation") ==
        Lines{"near 77", "validation cola f1 1 0.9", "far 77", "validation cola f1 1 0.9",
              "early 77", "validation cola f1 1 0.9", "untested 77", "validation cola f1 2 0.61"});
  CHECK(f.ask(kEvery, "validation", "near") ==
        Lines{"near 77", "validation cola f1 1 0.5 (does not count)", "validation cola f1 1 0.9",
              "validation cola f1 2 0.61 (does not count)"});
  CHECK(f.ask(kSelected, "test", "far") == Lines{"far 77", "test cola f1 1 0.8"});
}

TEST_CASE("The last attempt counts, even if the one before has higher event numbers", "[results]") {
  ScoredSweep f;
  std::vector<ScoredSweep::Reported> first = {{"validation", "cola", "mcc", 1, 0.2}};
  for (const auto& loss : losses(100)) first.push_back(loss);
  first.push_back({"test", "cola", "f1", 5, 0.1});
  first.push_back({"validation", "cola", "f1", 5, 0.1});
  const auto counted = static_cast<std::int64_t>(first.size());
  f.trial("t", {first, {{"validation", "cola", "f1", 5, 0.7}, {"test", "cola", "f1", 5, 0.9}}},
          counted);
  CHECK(f.ask(kSelected) == Lines{"t 77", "test cola f1 5 0.9", "train cola loss 5 0.5",
                                  "validation cola f1 5 0.7", "validation cola mcc 1 0.2"});
  CHECK(f.ask(kEvery, "validation") == Lines{"t 77", "validation cola f1 5 0.1 (does not count)",
                                             "validation cola f1 5 0.7",
                                             "validation cola mcc 1 0.2"});
  const ScoreReader scores(f.file);
  CHECK(scores.artifact("t")->selected_step == 5);
  std::vector<double> counting;
  for (const SeriesName& series : scores.series_of("t")) {
    for (const HistoryPoint& point : scores.history("t", series)) {
      if (point.counts) counting.push_back(point.value.value());
    }
  }
  CHECK(counting == std::vector<double>{0.9, 0.5, 0.7, 0.2});
}

TEST_CASE("The selected step is known even if only the parent attempt was tested", "[results]") {
  ScoredSweep f;
  f.trial("t",
          {{{"validation", "cola", "f1", 1, 0.9},
            {"test", "cola", "f1", 1, 0.8},
            {"validation", "cola", "f1", 2, 0.6}},
           {}},
          3);
  CHECK(f.ask(kSelected) == Lines{"t 77", "test cola f1 1 0.8", "validation cola f1 1 0.9"});
  CHECK(ScoreReader(f.file).artifact("t")->selected_step == 1);
  CHECK(rows(f.file, "SELECT DISTINCT selected_step FROM results") == Lines{"1"});
}

TEST_CASE("Values come from the later attempt even if the earlier one has higher seqs",
          "[results]") {
  // The first attempt has higher seqs, and scores after its checkpoint that do not count.
  auto first = losses(80);
  first.push_back({"validation", "cola", "f1", 80, 0.1});
  first.push_back({"validation", "cola", "mcc", 80, 0.2});
  const auto counted = static_cast<std::int64_t>(first.size());
  first.push_back({"validation", "cola", "f1", 99, 0.99});
  first.push_back({"test", "cola", "f1", 99, 0.98});
  std::vector<ScoredSweep::Reported> second = {{"validation", "cola", "f1", 90, 0.7},
                                               {"train", "cola", "loss", 90, 0.25},
                                               {"test", "cola", "f1", 90, 0.9}};
  Lines tail;
  SECTION("with few values at the end") {}
  SECTION("with more values at the end than the first read covers") {
    for (int i = 0; i < 70; ++i)
      second.push_back({"test", "cola", fmt::format("p{:02}", i), 90, 0});
    for (int i = 0; i < 70; ++i) tail.push_back(fmt::format("test cola p{:02} 90 0", i));
  }
  ScoredSweep f;
  f.trial("t", {first, second}, counted);
  Lines wanted = {"t 77", "test cola f1 90 0.9"};
  wanted.insert(wanted.end(), tail.begin(), tail.end());
  wanted.insert(wanted.end(), {"train cola loss 90 0.25", "validation cola f1 90 0.7",
                               "validation cola mcc 80 0.2"});
  CHECK(f.ask(kSelected) == wanted);
  CHECK(f.ask(kEvery, "validation") == Lines{"t 77", "validation cola f1 80 0.1 (does not count)",
                                             "validation cola f1 90 0.7",
                                             "validation cola mcc 80 0.2"});
}

TEST_CASE("Without test scores the last value of the later attempt counts", "[results]") {
  // The first attempt has higher seqs, and only it has a value of mcc.
  auto first = losses(80);
  first.push_back({"validation", "cola", "f1", 80, 0.1});
  first.push_back({"validation", "cola", "mcc", 80, 0.2});
  const auto counted = static_cast<std::int64_t>(first.size());
  ScoredSweep f;
  f.trial("t", {first, {{"validation", "cola", "f1", 90, 0.7}}}, counted);
  CHECK(f.ask(kSelected, "validation") ==
        Lines{"t 77", "validation cola f1 90 0.7", "validation cola mcc 80 0.2"});
}

TEST_CASE("Scores for the task of another trial are left out, those for a task of no trial are not",
          "[results]") {
  ScoredSweep f;
  f.trial("t", {{{"test", "cola", "f1", 1, 0.1}, {"test", "glue", "mean", 1, 0.2}}});
  for (const std::string task : {"mrpc", "co"}) {
    Batch batch = f.store.begin();
    TrialRow other = trial_row("other-" + task);
    other.config.replace(other.config.find("cola"), 4, task);
    batch.record_trial(other);
    batch.commit();
  }
  f.trial("u", {{{"test", "cola", "f1", 1, 0.3},
                 {"test", "mrpc", "f1", 1, 0.4},
                 {"test", "co", "f1", 1, 0.5}}});
  for (const auto steps : {kSelected, kEvery}) {
    CHECK(f.ask(steps) == Lines{"t 77", "test cola f1 1 0.1", "test glue mean 1 0.2", "u 77",
                                "test cola f1 1 0.3"});
    CHECK(f.ask(steps, "", "u") == Lines{"u 77", "test cola f1 1 0.3"});
  }
}

TEST_CASE("Trials that are hidden or have no result have no scores", "[results]") {
  ScoredSweep f;
  f.trial("t", {{{"test", "cola", "f1", 1, 0.1}}});
  f.trial("gone", {{{"test", "cola", "f1", 1, 0.1}}});
  Batch batch = f.store.begin();
  set_hidden(batch, "gone", Hiding{"wrong", 1});
  batch.record_trial(trial_row("new"));
  f.sweep.members.push_back({"new", "a"});
  batch.record_sweep(f.sweep, {}, 1);
  batch.commit();
  CHECK(f.ask(kSelected) == Lines{"t 77", "test cola f1 1 0.1"});
  CHECK(f.ask(kEvery) == f.ask(kSelected));
}

TEST_CASE("In the history of a trial without a result the last report counts", "[results]") {
  ScoredSweep f;
  {
    Batch batch = f.store.begin();
    batch.record_trial(trial_row("t"));
    const AttemptRef attempt = batch.record_attempt(request("t"), 1);
    const Series series = series_in(batch, "validation", "cola", "f1");
    const MetricReport reports[] = {{1, 20, series, 0.5}, {2, 10, series, 0.25}};
    append_metrics(batch, attempt, reports);
    batch.commit();
  }
  const ScoreReader scores(f.file);
  std::vector<std::pair<std::int64_t, bool>> counts;
  for (const HistoryPoint& point : scores.history("t", scores.series_of("t").at(0))) {
    counts.emplace_back(point.step, point.counts);
  }
  CHECK(counts == std::vector<std::pair<std::int64_t, bool>>{{10, true}, {20, false}});
}

TEST_CASE("The view scores has the same values as every reader", "[results]") {
  ScoredSweep f;
  f.trial("mrpc", {{{"test", "mrpc", "f1", 1, 0.5}}});
  f.trial("t", {{{"validation", "cola", "f1", 1, 0.9},
                 {"test", "cola", "f1", 1, 0.8},
                 {"validation", "cola", "f1", 2, 0.6},
                 {"test", "nobodys", "f1", 2, 0.1},
                 {"validation", "nobodys", "f1", 2, 0.2}}});
  const char* const kScores =
      "SELECT trial_id, split, task, step, value FROM scores ORDER BY trial_id, split, task";
  CHECK(rows(f.file, kScores) == Lines{"mrpc|test|mrpc|1|0.5", "t|test|cola|1|0.8",
                                       "t|test|nobodys|2|0.1", "t|validation|cola|1|0.9",
                                       "t|validation|nobodys|2|0.2"});
  CHECK(rows(f.file, "SELECT count(*), group_concat(DISTINCT variant) FROM sweep_scores") ==
        Lines{"10|a,b"});
  CHECK(f.ask(kSelected, "validation", "t") ==
        Lines{"t 77", "validation cola f1 1 0.9", "validation nobodys f1 2 0.2"});
  Batch batch = f.store.begin();
  renew(batch, "t", Renewal{1, true, "wrong", 1});
  set_hidden(batch, "mrpc", Hiding{"wrong", 1});
  batch.commit();
  CHECK(rows(f.file, kScores).empty());
}

TEST_CASE("A value counts again after its attempt's events were forgotten and read again",
          "[results]") {
  ScoredSweep f;
  f.trial("t",
          {{{"validation", "cola", "f1", 1, 0.9}, {"validation", "cola", "mcc", 1, 0.3}},
           {{"validation", "cola", "f1", 2, 0.6}}},
          2);
  const Lines all = {"t 77", "validation cola f1 2 0.6", "validation cola mcc 1 0.3"};
  REQUIRE(f.ask(kSelected) == all);
  Batch batch = f.store.begin();
  const AttemptRef first = Reader(f.file).attempt_facts("t", 1)->attempt;
  forget_events(batch, first);
  batch.commit();
  CHECK(f.ask(kSelected) == Lines{"t 77", "validation cola f1 2 0.6"});
  Batch again = f.store.begin();
  const MetricReport reports[] = {{1, 1, series_in(again, "validation", "cola", "f1"), 0.9},
                                  {2, 1, series_in(again, "validation", "cola", "mcc"), 0.3}};
  append_metrics(again, first, reports);
  again.commit();
  CHECK(f.ask(kSelected) == all);
}

}  // namespace petlab::results
