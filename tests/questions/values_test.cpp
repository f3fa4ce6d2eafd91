#include "questions/values.h"

#include <fmt/format.h>

#include <cmath>

#include "questions/conditions.h"
#include "questions/summary.h"
#include "tests/questions/helpers.h"
#include "tests/support/catch.h"

namespace petlab::questions {
namespace {

using Lines = std::vector<std::string>;

std::string shown_of(const results::Value& value) {
  if (const auto* whole = std::get_if<std::int64_t>(&value)) return std::to_string(*whole);
  if (const auto* real = std::get_if<double>(&value)) return fmt::format("{}", *real);
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  return "NULL";
}

// The columns, then each row; or the error message.
Lines value_lines(const SmallDatabase& database, const std::string& where,
                  ValuesRequest request = {}) {
  Lines lines;
  try {
    if (!where.empty()) request.where = parse_where(where);
    each_value(results::ScoreReader(database.file()), request,
               {[&](const std::vector<std::string>& columns) {
                  lines.push_back(fmt::format("{}", fmt::join(columns, "|")));
                },
                [&](const std::vector<results::Value>& row) {
                  std::string& line = lines.emplace_back();
                  for (const auto& value : row) line += (line.empty() ? "" : "|") + shown_of(value);
                }});
    return lines;
  } catch (const std::invalid_argument& error) {
    return {error.what()};
  }
}

TEST_CASE("Each value of a trial is a row, with the fields in which trials differ", "[questions]") {
  SmallDatabase database;
  CHECK(value_lines(database, "") == Lines{"trial_id|seed|task|split|metric|step|value"});
  sweeps::TrialConfig config = SmallDatabase::config("cola", 7, 8);
  config.user = R"({"width":3,"same":1})";
  const std::string first = database.add("a", config);
  database.finish(first, {{4, "validation", "cola", "accuracy", 0.25},
                          {8, "validation", "cola", "accuracy", 0.5},
                          {8, "test", "cola", "accuracy", std::nullopt},
                          {8, "test", "cola", "loss", 2}});
  config = SmallDatabase::config("rte", 9, 64);
  config.user = R"({"same":1})";
  database.scored("b", config, 0.75);
  // This trial has no value, so its fields do not count as different.
  config.training.batch_size = 3;
  database.add("c", config);
  CHECK(value_lines(database, "") ==
        Lines{"trial_id|variant|seed|module_bottleneck|user.width|task|split|metric|step|value",
              "t1|a|7|8|3|cola|test|accuracy|8|NULL", "t1|a|7|8|3|cola|test|loss|8|2",
              "t2|b|9|64|NULL|rte|test|accuracy|9|0.75"});
  ValuesRequest every;
  every.by = parse_words("seed", "--by");
  every.splits = {"validation", "test"};
  every.metrics = {"accuracy"};
  every.steps = results::ScoreQuestion::Steps::every;
  CHECK(value_lines(database, "task=cola", every) ==
        Lines{"trial_id|seed|task|split|metric|step|value", "t1|7|cola|test|accuracy|8|NULL",
              "t1|7|cola|validation|accuracy|4|0.25", "t1|7|cola|validation|accuracy|8|0.5"});
  CHECK(value_lines(database, "task=colla") ==
        Lines{"no trial has task colla; did you mean cola?"});
  every.metrics = {"acuracy"};
  CHECK(value_lines(database, "", every) ==
        Lines{"unknown metric \"acuracy\"; did you mean \"accuracy\"?"});
  every.metrics = {};
  every.splits = {"tset"};
  CHECK(value_lines(database, "", every) ==
        Lines{"unknown split \"tset\"; did you mean \"test\"?"});
}

TEST_CASE("A trial of several sweeps and variants is one row and counts once", "[questions]") {
  SmallDatabase database;
  const std::string id = database.scored("b", SmallDatabase::config("cola", 1), 0.5);
  const std::string other = database.scored("c", SmallDatabase::config("cola", 2), 1.5);
  {
    results::Store store(database.file());
    results::Batch batch = store.begin();
    // The trial comes first and last in the sweep.
    batch.record_sweep({"other", "", "", "", {{id, "z"}, {other, "y"}, {id, "a"}, {id, "b"}}}, {},
                       2);
    batch.commit();
  }
  ValuesRequest request;
  request.by = parse_words("sweep,variant", "--by");
  CHECK(value_lines(database, "sweep=other and variant=a", request) ==
        Lines{"trial_id|sweep|variant|task|split|metric|step|value",
              "t1|s, other|b, z, a|cola|test|accuracy|9|0.5"});
  CHECK(value_lines(database, "sweep=s and variant=a", request).size() == 1);
  CHECK(value_lines(database, "variant!=z", request).size() == 3);

  const auto mean_and_n = [&](const std::string& where, const std::string& by) {
    SummaryRequest summary;
    summary.where = parse_where(where);
    summary.by = parse_words(by, "--by");
    const Summary result = summarise(results::ScoreReader(database.file()), summary);
    std::string text;
    for (const SummaryRow& row : result.rows) {
      text += fmt::format("{}({}) ", *row.cells.at(0)->mean, row.cells.at(0)->n);
    }
    return text;
  };
  CHECK(mean_and_n("sweep=other", "task") == "1(2) ");
  CHECK(mean_and_n("variant!=nothing", "sweep") == "1(2) 1(2) ");
}

}  // namespace
}  // namespace petlab::questions
