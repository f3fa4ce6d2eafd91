#include "metrics/classification.h"

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "tests/metrics/golden_json.h"
#include "tests/support/catch.h"
#include "tests/support/golden.h"

using namespace petlab::metrics;
using petlab::testing::read_json;
using petlab::testing::read_json_lines;

namespace {

using Labels = std::vector<std::int64_t>;

std::string error_of(const Labels& gold, const Labels& predicted, std::int64_t num_labels) {
  try {
    Confusion(gold, predicted, num_labels);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "accepted";
}

// Checks one metric of a golden case.
void check_metric(const nlohmann::json& expected, const Confusion& confusion,
                  double (*metric)(const Confusion&)) {
  if (expected.value("library", "") == "must be refused") {
    CHECK_THROWS_AS(metric(confusion), std::invalid_argument);
  } else {
    CHECK(metric(confusion) == Approx(expected.at("value").get<double>()).margin(1e-12).epsilon(0));
  }
}

}  // namespace

TEST_CASE("label metrics agree with scikit-learn's values", "[metrics][golden]") {
  const auto folder = petlab::testing::golden("metrics");
  if (!folder) return;
  int ran = 0;
  for (const auto& row : read_json_lines(*folder / "glue_classification.jsonl")) {
    INFO(row.at("name").get<std::string>());
    const Confusion confusion(row.at("gold").get<Labels>(), row.at("pred").get<Labels>(),
                              row.at("num_labels").get<std::int64_t>());
    check_metric(row.at("accuracy"), confusion, accuracy);
    check_metric(row.at("f1"), confusion, f1);
    check_metric(row.at("f1_macro"), confusion, f1_macro);
    check_metric(row.at("matthews"), confusion, matthews);
    // Where scikit-learn warns that a value is a convention, petlab has a note.
    if (row.at("f1").contains("warnings")) CHECK(!convention_note(confusion, "f1").empty());
    if (row.at("matthews").contains("warnings")) {
      CHECK(!convention_note(confusion, "matthews").empty());
    }
    ran++;
  }
  petlab::testing::golden_ran("metrics/glue_classification", ran);
}

TEST_CASE("label metrics of a million examples agree with scikit-learn's values",
          "[metrics][golden][wide]") {
  const auto folder = petlab::testing::golden("metrics");
  if (!folder) return;
  int ran = 0;
  const auto file = read_json(*folder / "glue_big.json");
  for (const auto& row : file.at("cases")) {
    const std::string kind = row.at("kind");
    if (kind != "binary" && kind != "three") continue;
    auto state = row.at("seed").get<std::uint32_t>();
    const auto next = [&state] {
      state = state * 1664525u + 1013904223u;
      return static_cast<std::int64_t>(state >> 8);
    };
    Labels gold;
    Labels predicted;
    for (std::int64_t i = 0; i < row.at("n").get<std::int64_t>(); ++i) {
      const std::int64_t a = next();
      const std::int64_t b = next();
      if (kind == "binary") {
        gold.push_back(a % 3 == 0 ? 1 : 0);
        predicted.push_back(b % 10 < 8 ? gold.back() : 1 - gold.back());
      } else {
        gold.push_back(a % 3);
        predicted.push_back(b % 10 < 7 ? gold.back() : (gold.back() + 1 + b % 2) % 3);
      }
    }
    REQUIRE(Labels(gold.begin(), gold.begin() + 4) == row.at("first_4_gold").get<Labels>());
    REQUIRE(Labels(predicted.begin(), predicted.begin() + 4) ==
            row.at("first_4_pred").get<Labels>());
    const Confusion confusion(gold, predicted, kind == "binary" ? 2 : 3);
    const auto near = [&](const char* metric) {
      return Approx(row.at(metric).at("value").get<double>())
          .margin(row.at("tolerance").get<double>())
          .epsilon(0);
    };
    CHECK(accuracy(confusion) == near("accuracy"));
    CHECK(f1_macro(confusion) == near("f1_macro"));
    CHECK(matthews(confusion) == near("matthews"));
    if (row.contains("f1")) CHECK(f1(confusion) == near("f1"));
    ran++;
  }
  petlab::testing::golden_ran("metrics/glue_big labels", ran);
}

TEST_CASE("label metrics refuse invalid labels and class numbers", "[metrics]") {
  CHECK(error_of({0, 1, 1}, {0, 1}, 2) ==
        "3 gold labels and 2 predictions: the numbers must be equal");
  CHECK(error_of({}, {}, 2) == "no examples: at least one is needed");
  CHECK(error_of({0, 1, 1}, {0, 2, 1}, 2) ==
        "predicted label 2 of element 1 is outside the classes 0..1");
  CHECK(error_of({0, 3, 1}, {0, 1, 1}, 3) ==
        "gold label 3 of element 1 is outside the classes 0..2");
  CHECK(error_of({0, 1, 1}, {0, -1, 1}, 2) ==
        "predicted label -1 of element 1 is outside the classes 0..1");
  CHECK(error_of({0}, {0}, 0) == "the number of classes is 0, must be 1 to 4096");
  CHECK_THROWS_WITH(accuracy(Confusion(2)), "accuracy of no examples: at least one is needed");
  CHECK_THROWS_WITH(f1(Confusion(Labels{0, 2}, Labels{0, 2}, 3)),
                    "f1 needs two classes, found 3: f1-macro takes any number");
}

TEST_CASE("label metrics refuse every invalid golden input", "[metrics][golden][wide]") {
  const auto folder = petlab::testing::golden("metrics");
  if (!folder) return;
  int ran = 0;
  for (const auto& row : read_json(*folder / "glue_refused.json")) {
    if (row.at("metrics") == "regression") continue;
    INFO(row.at("name").get<std::string>());
    CHECK(error_of(row.at("gold"), row.at("pred"), row.value("num_labels", 2)) != "accepted");
    ran++;
  }
  petlab::testing::golden_ran("metrics/glue_refused labels", ran);
}

TEST_CASE("label metrics do not depend on the order of examples, or on counting in parts",
          "[metrics]") {
  std::mt19937 random(3);
  Labels gold(501);
  Labels predicted(501);
  for (auto& label : gold) label = static_cast<std::int64_t>(random() % 4);
  for (auto& label : predicted) label = static_cast<std::int64_t>(random() % 4);
  const Confusion whole(gold, predicted, 4);

  std::vector<std::size_t> order(gold.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::shuffle(order.begin(), order.end(), random);
  Confusion first(4);
  Confusion second(4);
  for (const std::size_t i : order) (i % 2 == 0 ? first : second).add(gold[i], predicted[i]);
  first.merge(second);

  CHECK(first.total() == 501);
  CHECK(accuracy(first) == accuracy(whole));
  CHECK(f1_macro(first) == f1_macro(whole));
  CHECK(matthews(first) == matthews(whole));
  CHECK_THROWS_WITH(first.merge(Confusion(3)), "counts over 3 classes do not add to counts over 4");
}

TEST_CASE("correct predictions score 1, and opposite ones have a Matthews of -1", "[metrics]") {
  const Labels gold = {0, 1, 1, 0, 1};
  const Confusion same(gold, gold, 2);
  CHECK(accuracy(same) == 1.0);
  CHECK(f1(same) == 1.0);
  CHECK(f1_macro(same) == 1.0);
  CHECK(matthews(same) == 1.0);
  CHECK(matthews(Confusion(gold, Labels{1, 0, 0, 1, 0}, 2)) == -1.0);
}

TEST_CASE("an invalid prediction is wrong, and with two classes counts as the opposite one",
          "[metrics]") {
  Confusion two(2);
  two.add(1, 1);
  two.add(0, 0);
  two.add_invalid(1);
  CHECK(two.count(1, 0) == 1);
  CHECK(two.invalid() == 1);
  CHECK(accuracy(two) == Approx(2.0 / 3));

  Confusion three(3);
  three.add(0, 0);
  three.add(1, 1);
  three.add_invalid(2);
  CHECK(accuracy(three) == Approx(2.0 / 3));
  // Class 2 is a gold label but never predicted: (1 + 1 + 0) / 3.
  CHECK(f1_macro(three) == Approx(2.0 / 3));
  CHECK(three.predicted_total(2) == 0);
}

TEST_CASE("a value set by convention has a note", "[metrics]") {
  const Confusion constant(Labels{0, 0}, Labels{0, 0}, 2);
  CHECK(f1(constant) == 0.0);
  CHECK(matthews(constant) == 0.0);
  CHECK(convention_note(constant, "f1") ==
        "no example and no prediction is of class 1: f1 is 0 by convention");
  CHECK(convention_note(constant, "matthews") ==
        "all examples or all predictions are of one class: matthews is 0 by convention");
  const Confusion mixed(Labels{0, 1, 0}, Labels{0, 1, 1}, 2);
  CHECK(convention_note(mixed, "f1").empty());
  CHECK(convention_note(mixed, "matthews").empty());
}
