#include "questions/summary.h"

#include <fmt/format.h>

#include "questions/conditions.h"
#include "tests/questions/helpers.h"
#include "tests/support/catch.h"

namespace petlab::questions {
namespace {

using Lines = std::vector<std::string>;

std::string shown_value(const results::Value& value) {
  if (const auto* whole = std::get_if<std::int64_t>(&value)) return std::to_string(*whole);
  if (const auto* real = std::get_if<double>(&value)) return fmt::format("{}", *real);
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  return "NULL";
}

// The header, then each row as `key|key: mean±deviation(n) …`.
Lines summary_lines(const SmallDatabase& database, const std::string& where, const std::string& by,
                    const std::string& pivot = "", SummaryRequest request = {}) {
  try {
    if (!where.empty()) request.where = questions::parse_where(where);
    if (!by.empty()) request.by = questions::parse_words(by, "--by");
    if (!pivot.empty()) request.pivot = results::word_named(pivot);
    const Summary summary = summarise(results::ScoreReader(database.file()), request);
    Lines lines = {
        fmt::format("{}: {}", fmt::join(summary.by, "|"), fmt::join(summary.columns, "|"))};
    for (const SummaryRow& row : summary.rows) {
      std::string line;
      for (const auto& value : row.key) line += (line.empty() ? "" : "|") + shown_value(value);
      line += ":";
      for (const auto& cell : row.cells) {
        line +=
            !cell ? " -"
                  : fmt::format(" {}±{}({})", cell->mean ? fmt::format("{:.3g}", *cell->mean) : "?",
                                cell->deviation ? fmt::format("{:.3g}", *cell->deviation) : "?",
                                cell->n);
      }
      if (row.pending > 0) line += fmt::format(" pending {}", row.pending);
      if (row.stopped_early > 0) line += fmt::format(" stopped {}", row.stopped_early);
      lines.push_back(line);
    }
    lines.insert(lines.end(), summary.notes.begin(), summary.notes.end());
    return lines;
  } catch (const std::invalid_argument& error) {
    return {error.what()};
  }
}

}  // namespace

TEST_CASE("Means are over seeds, and tasks are never pooled", "[questions]") {
  SmallDatabase database;
  for (const char* task : {"cola", "rte"}) {
    for (const std::uint64_t seed : {1, 2}) {
      const double base = task == std::string("cola") ? 0.5 : 0.25;
      database.scored("small", SmallDatabase::config(task, seed, 8),
                      base + 0.125 * static_cast<double>(seed));
      database.scored("large", SmallDatabase::config(task, seed, 64), base);
    }
  }
  const Lines usual = {"variant|task: accuracy", "small|cola: 0.688±0.0884(2)",
                       "large|cola: 0.5±0(2)", "small|rte: 0.438±0.0884(2)",
                       "large|rte: 0.25±0(2)"};
  CHECK(summary_lines(database, "", "") == usual);
  CHECK(summary_lines(database, "", "variant") == usual);
  CHECK(summary_lines(database, "", "variant", "task") ==
        Lines{"variant: cola accuracy|rte accuracy", "small: 0.688±0.0884(2) 0.438±0.0884(2)",
              "large: 0.5±0(2) 0.25±0(2)"});
  CHECK(summary_lines(database, "task=rte and module.bottleneck>8", "seed") ==
        Lines{"seed: accuracy", "1: 0.25±?(1)", "2: 0.25±?(1)"});
  CHECK(summary_lines(database, "task=cola", "module_kind") ==
        Lines{"module_kind: accuracy", "adapter: 0.594±0.12(4)",
              "some means are over trials that differ in more than their seeds, in "
              "module_bottleneck: add what matters to --by, or choose with --where"});
  CHECK(summary_lines(database, "variant!=small and metric=accuracy", "name,task").at(1) ==
        "accuracy|cola: 0.5±0(2)");
}

TEST_CASE("A trial of two sweeps counts once, and user keys are fields", "[questions]") {
  SmallDatabase database;
  sweeps::TrialConfig config = SmallDatabase::config("cola", 1);
  config.user = R"({"width":3})";
  const std::string id = database.scored("a", config, 0.5);
  {
    results::Store store(database.file());
    results::Batch batch = store.begin();
    batch.record_sweep({"other", "", "", "", {{id, "a"}}}, {}, 2);
    batch.commit();
  }
  CHECK(summary_lines(database, "", "variant") == Lines{"variant: accuracy", "a: 0.5±?(1)"});
  CHECK(summary_lines(database, "", "sweep,variant").size() == 3);
  CHECK(summary_lines(database, "user.width=3", "user.width") ==
        Lines{"user.width: accuracy", "3: 0.5±?(1)"});
  CHECK(summary_lines(database, "user.width='3'", "seed") == Lines{"seed: "});
}

TEST_CASE("Notes count missing results and undefined values", "[questions]") {
  SmallDatabase database;
  database.scored("a", SmallDatabase::config("cola", 1), std::nullopt);
  database.scored("a", SmallDatabase::config("cola", 2), 0.5);
  database.add("a", SmallDatabase::config("cola", 3));
  database.add("b", SmallDatabase::config("cola", 4));
  CHECK(summary_lines(database, "", "variant") ==
        Lines{"variant: accuracy", "a: ?±?(2) pending 1", "b: - pending 1",
              "2 of 4 trials have no result yet",
              "1 values are undefined; a mean with one of them is undefined too"});
}

TEST_CASE("A trial that stopped early is not pending, unless it continues", "[questions]") {
  SmallDatabase database;
  database.scored("a", SmallDatabase::config("cola", 1), 0.5);
  for (const std::uint64_t seed : {2, 3}) {
    database.stop_early(database.add("a", SmallDatabase::config("cola", seed)));
  }
  database.add("a", SmallDatabase::config("cola", 4));
  const std::string stopped = "trials stopped early: means are over those that continued";
  CHECK(summary_lines(database, "", "variant") ==
        Lines{"variant: accuracy", "a: 0.5±?(1) pending 1 stopped 2",
              "1 of 4 trials have no result yet", "2 of 4 " + stopped});
  database.resume_stopped("t2");
  CHECK(summary_lines(database, "", "variant") ==
        Lines{"variant: accuracy", "a: 0.5±?(1) pending 2 stopped 1",
              "2 of 4 trials have no result yet", "1 of 4 " + stopped});
}

TEST_CASE("Pending trials are counted for the selected tasks alone", "[questions]") {
  SmallDatabase database;
  database.scored("a", SmallDatabase::config("rte", 1), 0.5);
  sweeps::TrialConfig both = SmallDatabase::config("cola", 2);
  both.tasks = {"cola", "rte"};
  database.add("a", both);
  for (const char* where : {"task!=cola", "task=rte"}) {
    INFO(where);
    CHECK(summary_lines(database, where, "task") ==
          Lines{"task: accuracy", "rte: 0.5±?(1) pending 1", "1 of 2 trials have no result yet"});
  }
}

TEST_CASE("Unknown words are reported with the nearest known one", "[questions]") {
  SmallDatabase database;
  CHECK(summary_lines(database, "", "") == Lines{": "});
  database.scored("propetl", SmallDatabase::config("cola", 1), 0.5);
  CHECK(summary_lines(database, "sed=1", "") ==
        Lines{"unknown field \"sed\"; did you mean \"seed\"?"});
  CHECK(summary_lines(database, "", "bottleneck") ==
        Lines{"unknown field \"bottleneck\"; did you mean \"module_bottleneck\"?"});
  CHECK(summary_lines(database, "variant=propetal", "") ==
        Lines{"no trial has variant propetal; did you mean propetl?"});
  CHECK(summary_lines(database, "task=colla", "") ==
        Lines{"no trial has task colla; did you mean cola?"});
  CHECK(summary_lines(database, "split=test", "") ==
        Lines{"--where: found split, expected a field: the split is chosen with --split"});
  SummaryRequest request;
  request.metrics = {"acuracy"};
  CHECK(summary_lines(database, "", "", "", request) ==
        Lines{"unknown metric \"acuracy\"; did you mean \"accuracy\"?"});
  CHECK(summary_lines(database, "", "seed", "seed") ==
        Lines{"seed is in --by and in --pivot, want it in one of them"});
  // Text that would end an SQL statement is a name like any other.
  CHECK(summary_lines(database, "variant='x''; DROP TABLE trials --'", "") ==
        Lines{"no trial has variant x'; DROP TABLE trials --; there are propetl"});
  CHECK(summary_lines(database, "user.a\"b=1", "") ==
        Lines{"user.a\"b: a key with a quotation mark cannot be asked for"});
}

TEST_CASE("The selected step counts among several", "[questions]") {
  SmallDatabase database;
  const std::string id = database.add("a", SmallDatabase::config("cola", 1));
  database.finish(id, {{1, "train", "cola", "loss", 4.0},
                       {2, "validation", "cola", "f1", 0.75},
                       {4, "validation", "cola", "f1", 0.5},
                       {4, "train", "cola", "loss", 1.0},
                       {2, "test", "cola", "f1", 0.625}});
  SummaryRequest request;
  request.split = "validation";
  CHECK(summary_lines(database, "", "", "", request) == Lines{"variant: f1", "a: 0.75±?(1)"});
  request.split = "train";  // never reported at step 2, so the last value counts
  CHECK(summary_lines(database, "", "", "", request) == Lines{"variant: loss", "a: 1±?(1)"});
  const results::ScoreReader reader(database.file());
  CHECK(reader.artifact(id)->selected_step == 2);
  CHECK(reader.artifact(id)->path == "artifact.petl");
  const auto series = reader.series_of(id);
  REQUIRE(series.size() == 3);
  const auto points = reader.history(id, series[1]);
  REQUIRE(points.size() == 2);
  CHECK(points[1].step == 4);
  CHECK(points[1].value == 1.0);
}

}  // namespace petlab::questions
