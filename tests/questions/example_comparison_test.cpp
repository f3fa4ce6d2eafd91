// Comparisons of sides whose trials kept their predictions.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "questions/compare.h"
#include "tests/questions/helpers.h"
#include "tests/support/catch.h"

namespace petlab::questions {
namespace {

constexpr int kExamples = 100;

// Predictions that are correct for the examples from `begin` to `end`, exclusive.
metrics::KeptPredictions right_about(int begin, int end) {
  metrics::KeptPredictions predictions;
  for (int example = 0; example < kExamples; ++example) {
    predictions.gold.emplace_back("1");
    predictions.predicted.emplace_back(begin <= example && example < end ? "1" : "0");
  }
  return predictions;
}

// Trials of variants a and b, with one seed per entry of `right`: the number of examples for which
// b is correct. a is correct for the first 50.
class Compared {
 public:
  explicit Compared(const std::vector<int>& right) {
    for (std::size_t seed = 0; seed < right.size(); ++seed) {
      add("a", seed, 50);
      add("b", seed, right[seed]);
    }
  }
  void lose(const std::string& trial) { kept_.erase(trial); }

  Comparison comparison() const {
    CompareRequest request;
    request.baseline = parse_side("a");
    request.others = {parse_side("b")};
    request.predictions = [&](const ResultOf& result, const std::string& task) {
      CHECK(task == "cola");
      CHECK(result.attempt == 1);
      const auto found = kept_.find(result.trial_id);
      return found == kept_.end() ? std::nullopt : std::optional(right_about(0, found->second));
    };
    return compare(results::ScoreReader(database_.file()), request).comparisons.at(0);
  }

 private:
  void add(const std::string& variant, std::size_t seed, int right) {
    kept_[database_.scored(variant, SmallDatabase::config("cola", seed, variant == "a" ? 8 : 64),
                           right / 100.0)] = right;
  }

  SmallDatabase database_;
  std::map<std::string, int> kept_;  // by trial
};

}  // namespace

TEST_CASE("Two seeds are compared over their examples if predictions were kept", "[questions]") {
  Compared sides({70, 72});
  const Comparison comparison = sides.comparison();
  REQUIRE(comparison.examples);
  CHECK(comparison.examples->examples == kExamples);
  REQUIRE(comparison.examples->mcnemar.size() == 2);
  CHECK(comparison.examples->mcnemar[0].only_a == 20);
  CHECK(comparison.examples->mcnemar[0].only_b == 0);
  REQUIRE(comparison.over_examples());
  CHECK_FALSE(comparison.examples->bootstrap->both);
  CHECK(comparison.over_examples()->interval.low > 0.1);
  CHECK(comparison.over_examples()->interval.high < 0.35);
  CHECK(comparison.examples_p < 0.001);
  CHECK(comparison.verdict ==
        "too few seeds for a test; with these seeds, b is better on other examples");
  CHECK(Compared({51, 52}).comparison().verdict ==
        "too few seeds for a test; with these seeds, examples show no difference");
  // One trial has lost its predictions.
  sides.lose("t4");
  CHECK_FALSE(sides.comparison().examples);
  CHECK(sides.comparison().verdict == "too few pairs to say anything");
}

TEST_CASE("A comparison that shows no difference says how many more seeds it needs",
          "[questions]") {
  const Comparison comparison = Compared({48, 56, 51, 57}).comparison();
  REQUIRE(comparison.p);
  INFO(comparison.verdict);
  CHECK(comparison.verdict.starts_with("no difference shown; needs about "));
  CHECK(comparison.verdict.ends_with(" more seeds; limited by the seeds"));
  REQUIRE(comparison.over_examples());
  CHECK(comparison.over_examples()->p == *comparison.examples->bootstrap->p);
  CHECK(comparison.over_examples()->interval == *comparison.examples->bootstrap->interval);
  CHECK(Compared({70, 71, 72, 73}).comparison().verdict == "b is better");
}

TEST_CASE("Predictions for different examples are noted, and seeds are compared all the same",
          "[questions]") {
  SmallDatabase database;
  for (const char* variant : {"a", "b"}) {
    database.scored(variant, SmallDatabase::config("cola", 1, variant[0]), 0.5);
  }
  CompareRequest request;
  request.baseline = parse_side("a");
  request.others = {parse_side("b")};
  request.predictions = [](const ResultOf& result, const std::string&) {
    metrics::KeptPredictions predictions = right_about(0, 50);
    if (result.trial_id == "t2") predictions.gold[7] = "0";
    return std::optional(predictions);
  };
  const CompareResult result = compare(results::ScoreReader(database.file()), request);
  CHECK(result.comparisons.at(0).pairs == 1);
  CHECK_FALSE(result.comparisons.at(0).examples);
  REQUIRE(result.notes.size() == 1);
  CHECK(result.notes[0].starts_with("cola accuracy is not compared over examples: "));
}

}  // namespace petlab::questions
