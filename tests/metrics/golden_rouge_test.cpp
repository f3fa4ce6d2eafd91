#include "metrics/porter_stemmer.h"
#include "metrics/rouge.h"
#include "tests/metrics/golden_text.h"
#include "tests/support/catch.h"
#include "tests/support/golden.h"
#include "tests/support/temp_dir.h"

using namespace petlab::metrics;
using namespace petlab::testing;
using nlohmann::json;

namespace {

constexpr double kRougeTolerance = 1e-12;

RougeScore score_of(const RougeOptions& options, const std::string& prediction,
                    const std::vector<std::string>& targets) {
  const Rouge metric(options);
  const std::vector<std::string_view> views(targets.begin(), targets.end());
  return metric.result(evaluate_segment(metric, prediction, views));
}

void check_types(const json& row, const std::vector<std::string>& targets) {
  for (const std::string mode : {"plain", "stem"}) {
    for (const auto& [type, wanted] : row.at(mode).items()) {
      INFO(row.at("id") << " " << mode << " " << type);
      const RougeScore found =
          score_of({*rouge_type_from(type), mode == "stem"}, row.at("prediction"), targets);
      CHECK(near(found.precision, wanted.at(0), kRougeTolerance));
      CHECK(near(found.recall, wanted.at(1), kRougeTolerance));
      CHECK(near(found.f, wanted.at(2), kRougeTolerance));
    }
  }
}

// Allows half a standard error of the mean, six standard deviations of the reference's noise.
void check_aggregate(const std::vector<RougeScore>& scores, const json& wanted) {
  const RougeInterval found = bootstrap_rouge(scores);
  const double tolerance = 0.5 * wanted.at("standard_error_of_mean_f").get<double>();
  const json& bounds = wanted.at("bootstrap_f_low_mid_high");
  CHECK(std::abs(found.low.f - bounds.at(0).get<double>()) <= tolerance);
  CHECK(std::abs(found.mid.f - bounds.at(1).get<double>()) <= tolerance);
  CHECK(std::abs(found.high.f - bounds.at(2).get<double>()) <= tolerance);
}

}  // namespace

TEST_CASE("ROUGE of pairs matches rouge-score", "[metrics][golden]") {
  for_each_case("rouge_pairs", [](const json& row) { check_types(row, {row.at("target")}); });
}

TEST_CASE("ROUGE with several targets takes the one with the largest F", "[metrics][golden]") {
  for_each_case("rouge_multi", [](const json& row) {
    check_types(row, row.at("targets").get<std::vector<std::string>>());
  });
}

TEST_CASE("ROUGE's tokens match rouge-score", "[metrics][golden]") {
  for_each_case("rouge_tokenize", [](const json& row) {
    INFO(row.dump());
    CHECK(rouge_tokens(row.at("text").get<std::string>(), false) ==
          row.at("plain").get<std::vector<std::string>>());
    CHECK(rouge_tokens(row.at("text").get<std::string>(), true) ==
          row.at("stem").get<std::vector<std::string>>());
  });
}

TEST_CASE("ROUGE of a corpus is the mean, and its bootstrap matches rouge-score",
          "[metrics][golden]") {
  const auto folder = golden("metrics");
  if (!folder) return;
  std::size_t cases = 0;
  for (const auto& file : golden_files(*folder, "rouge_corpus", ".json")) {
    const std::string suffix = file.stem().string().substr(std::string("rouge_corpus").size());
    const auto pairs = read_jsonl(*folder / ("rouge_pairs" + suffix + ".jsonl"));
    const json groups = json::parse(read_file(file));
    for (const auto& [prefix, group] : groups.items()) {
      if (!group.is_object()) continue;
      std::vector<std::string> predictions;
      MemoryCorpus::Stream targets;
      for (const json& pair : pairs) {
        if (!pair.at("id").get<std::string>().starts_with(prefix)) continue;
        predictions.push_back(pair.at("prediction"));
        targets.emplace_back(pair.at("target").get<std::string>());
      }
      REQUIRE(predictions.size() == group.at("pairs"));
      MemoryCorpus corpus(predictions, {targets});
      for (const std::string mode : {"plain", "stem"}) {
        for (const auto& [type, wanted] : group.at(mode).items()) {
          INFO(prefix << " " << mode << " " << type);
          const Rouge metric({*rouge_type_from(type), mode == "stem"});
          corpus.rewind();
          std::vector<RougeScore> scores;
          const auto found = evaluate(corpus, metric, 2,
                                      [&](std::int64_t, const Segment&, std::span<const double> s) {
                                        scores.push_back({s[0], s[1], s[2]});
                                      });
          const RougeScore mean = metric.result(found.sums);
          CHECK(near(mean.precision, wanted.at("mean_precision"), kRougeTolerance));
          CHECK(near(mean.recall, wanted.at("mean_recall"), kRougeTolerance));
          CHECK(near(mean.f, wanted.at("mean_f"), kRougeTolerance));
          check_aggregate(scores, wanted);
          ++cases;
        }
      }
    }
  }
  golden_ran("metrics/rouge_corpus", static_cast<std::int64_t>(cases));
}

TEST_CASE("stems match NLTK's Porter stemmer", "[metrics][golden]") {
  const auto folder = golden("metrics");
  if (!folder) return;
  std::int64_t cases = 0;
  for (const auto& file : golden_files(*folder, "porter_stems", ".tsv")) {
    LineReader lines(file.string());
    while (const auto line = lines.next()) {
      if (line->starts_with("#")) continue;
      std::istringstream in{std::string(*line)};
      std::string word;
      std::string stem;
      std::string token;
      std::getline(in, word, '\t');
      std::getline(in, stem, '\t');
      std::getline(in, token, '\t');
      INFO(word);
      CHECK(porter_stem(word) == stem);
      CHECK(rouge_tokens(word, true) == std::vector{token});
      ++cases;
    }
  }
  golden_ran("metrics/porter_stems", cases);
}
