#include "metrics/t5_labels.h"

#include <string>
#include <vector>

#include "metrics/correlation.h"
#include "metrics/glue.h"
#include "metrics/metric_table.h"
#include "tests/metrics/golden_json.h"
#include "tests/support/catch.h"
#include "tests/support/golden.h"

using namespace petlab::metrics;
using petlab::testing::numbers;
using petlab::testing::read_json;

namespace {

using Labels = std::vector<std::int64_t>;
using Texts = std::vector<std::string>;

const GlueTask& task_named(const std::string& name) {
  for (const GlueTask& task : glue_tasks()) {
    if (task.name == name) return task;
  }
  throw std::runtime_error("no GLUE task " + name);
}

}  // namespace

TEST_CASE("generated texts parse as in the golden values", "[metrics][golden][wide]") {
  const auto folder = petlab::testing::golden("metrics");
  if (!folder) return;
  const auto file = read_json(*folder / "t5_labels.json");
  int ran = 0;
  for (const auto& row : file.at("label_texts")) {
    const std::string text = row.at("text");
    INFO(text);
    for (const auto& [classes, expected] : row.at("label").items()) {
      const auto label = parse_class_text(text, std::stoll(classes));
      if (expected == "invalid") {
        CHECK(!label);
      } else {
        CHECK(label == expected.get<std::int64_t>());
      }
      ran++;
    }
  }
  for (const auto& row : file.at("stsb_texts")) {
    const std::string text = row.at("text");
    INFO(text);
    const auto score = parse_score_text(text);
    if (row.at("score") == "invalid") {
      CHECK(!score);
    } else {
      CHECK(score == row.at("score").get<double>());
    }
    ran++;
  }
  for (const auto& line : file.at("stsb_targets").at("rows")) {
    const auto row = nlohmann::json::parse(line.get<std::string>());
    CHECK(score_text(row.at(0)) == row.at(1).get<std::string>());
    ran++;
  }
  petlab::testing::golden_ran("metrics/t5_labels texts", ran);
}

TEST_CASE("metrics of generated labels count invalid texts as in the golden values",
          "[metrics][golden][wide]") {
  const auto folder = petlab::testing::golden("metrics");
  if (!folder) return;
  int ran = 0;
  const auto file = read_json(*folder / "t5_labels.json");
  for (const auto& row : file.at("class_cases")) {
    const GlueTask& task = task_named(row.at("task"));
    INFO(task.name);
    const Confusion confusion = confusion_of_texts(
        row.at("gold").get<Labels>(), row.at("predictions").get<Texts>(), task.num_labels);
    CHECK(confusion.invalid() == row.at("invalid").get<std::int64_t>());
    for (const auto& [metric, expected] : row.at("metrics").items()) {
      INFO(metric);
      CHECK(find_metric(metric)->of_labels(confusion) ==
            Approx(expected.get<double>()).margin(1e-12).epsilon(0));
    }
    std::vector<std::optional<double>> percent;
    for (const std::string_view metric : task.metrics) {
      if (metric.empty()) continue;
      percent.push_back(100 * find_metric(metric)->of_labels(confusion));
      CHECK(*percent.back() ==
            Approx(row.at("task_metrics_percent").at(std::string(metric)).get<double>())
                .margin(1e-10)
                .epsilon(0));
    }
    CHECK(*mean_of(percent) ==
          Approx(row.at("task_score_percent").get<double>()).margin(1e-10).epsilon(0));
    ran++;
  }
  petlab::testing::golden_ran("metrics/t5_labels labels", ran);
}

TEST_CASE("metrics of generated scores use -1 for invalid texts", "[metrics][golden][wide]") {
  const auto folder = petlab::testing::golden("metrics");
  if (!folder) return;
  int ran = 0;
  const auto file = read_json(*folder / "t5_labels.json");
  for (const auto& row : file.at("stsb_cases")) {
    const auto gold = numbers(row.at("gold"));
    std::vector<double> scores;
    std::int64_t invalid = 0;
    for (const std::string& text : row.at("predictions").get<Texts>()) {
      const auto score = parse_score_text(text);
      if (!score) invalid++;
      scores.push_back(score.value_or(kInvalidScore));
    }
    CHECK(scores == numbers(row.at("scores")));
    CHECK(invalid == row.at("invalid").get<std::int64_t>());
    std::vector<std::optional<double>> both;
    for (const char* metric : {"pearson", "spearman"}) {
      INFO(metric);
      both.push_back(find_metric(metric)->of_scores(gold, scores));
      const auto& expected = row.at("metrics").at(metric);
      if (expected == "undefined") {
        CHECK(!both.back());
      } else {
        REQUIRE(both.back());
        CHECK(*both.back() == Approx(expected.get<double>()).margin(1e-12).epsilon(0));
      }
    }
    if (row.at("task_score_percent") == "undefined") {
      CHECK(!mean_of(both));
    } else {
      CHECK(100 * *mean_of(both) ==
            Approx(row.at("task_score_percent").get<double>()).margin(1e-10).epsilon(0));
    }
    ran++;
  }
  petlab::testing::golden_ran("metrics/t5_labels scores", ran);
}

TEST_CASE("a class is an ASCII digit below the number of classes", "[metrics]") {
  CHECK(parse_class_text(" 1\n", 2) == 1);
  CHECK(parse_class_text("2", 3) == 2);
  for (const char* text : {"2", "", " ", "01", "+1", "1.0", "1_", "one", "1 1"}) {
    CHECK(!parse_class_text(text, 2));
  }
  // A no-break space is not ASCII white space.
  CHECK(!parse_class_text("\u00A01", 2));
}

TEST_CASE("a score is a decimal number within double's range", "[metrics]") {
  CHECK(parse_score_text("3.8") == 3.8);
  CHECK(parse_score_text("\t-1e-1 ") == -0.1);
  CHECK(parse_score_text("1e-310") == 1e-310);
  CHECK(parse_score_text("0.0001e-99999999999999999999") == 0.0);
  CHECK(parse_score_text("0e999999") == 0.0);
  CHECK(parse_score_text(std::string(400, '0') + "1") == 1.0);
  for (const char* text : {"", ".", "e1", "1e", "1e+", "+-1", "--1", "1e999", "0x10", "inf", "nan",
                           "1e99999999999999999999", "3,8"}) {
    CHECK(!parse_score_text(text));
  }
  CHECK(!parse_score_text("1" + std::string(400, '0')));
}

TEST_CASE("target texts are rounded as by numpy", "[metrics]") {
  CHECK(score_text(3.8) == "3.8");
  CHECK(score_text(0.25) == "0.2");
  CHECK(score_text(0.75) == "0.8");
  CHECK(score_text(5) == "5.0");
  CHECK_THROWS_WITH(score_text(1.0 / 0.0), "the score inf is not finite");
  CHECK_THROWS_WITH(confusion_of_texts(Labels{1}, Texts{}, 2),
                    "1 gold labels and 0 texts: the numbers must be equal");
  CHECK_THROWS_WITH(confusion_of_texts(Labels{}, Texts{}, 2),
                    "no examples: at least one is needed");
}
