#include <stdexcept>
#include <string>
#include <vector>

#include "questions/best.h"
#include "questions/compare.h"
#include "results/store.h"
#include "tests/questions/helpers.h"
#include "tests/support/catch.h"

namespace petlab::questions {
namespace {

/// Compares variants a and b: the number of pairs, or the error message.
std::string pairs_of(const SmallDatabase& database) {
  CompareRequest request;
  request.baseline = parse_side("a");
  request.others = {parse_side("b")};
  try {
    const CompareResult result = compare(results::ScoreReader(database.file()), request);
    return std::to_string(result.comparisons.at(0).pairs) + " pairs, " +
           std::to_string(result.comparisons.at(0).unpaired) + " unpaired";
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
}

}  // namespace

TEST_CASE("Sides pair over a field only if both vary it over the same values", "[questions]") {
  const auto varied = [](std::int64_t a1, std::int64_t a2, std::int64_t b1, std::int64_t b2,
                         double rate1, double rate2) {
    SmallDatabase database;
    for (const std::uint64_t seed : {1, 2}) {
      for (const std::int64_t bottleneck : {a1, a2}) {
        sweeps::TrialConfig config = SmallDatabase::config("cola", seed, bottleneck);
        config.training.learning_rate = bottleneck == a1 ? rate1 : rate2;
        database.scored("a", config, 0.5);
      }
      for (const std::int64_t bottleneck : {b1, b2}) {
        sweeps::TrialConfig config = SmallDatabase::config("cola", seed, bottleneck);
        config.module.share = true;
        database.scored("b", config, 0.6);
      }
    }
    return pairs_of(database);
  };
  CHECK(varied(8, 16, 8, 16, 0.5, 0.5) == "4 pairs, 0 unpaired");
  CHECK(varied(8, 16, 16, 32, 0.5, 0.5) ==
        "a: several trials have seed 1, expected one for each pair: they differ in "
        "module_bottleneck; choose with --where");
  // Only one side varies the learning rate, together with the bottleneck.
  CHECK(varied(8, 16, 8, 16, 0.5, 0.25) == "4 pairs, 0 unpaired");
}

TEST_CASE("A trial of two sweeps and two variants counts as one pair and once among the best",
          "[questions]") {
  SmallDatabase database;
  std::vector<results::SweepRow::Member> members;
  for (const std::uint64_t seed : {1, 2, 3}) {
    const double score = 0.5 + 0.01 * static_cast<double>(seed);
    members.push_back({database.scored("a", SmallDatabase::config("cola", seed, 8), score), "a"});
    members.push_back(
        {database.scored("b", SmallDatabase::config("cola", seed, 16), score + 0.1), "b"});
  }
  {
    results::Store store(database.file());
    results::Batch batch = store.begin();
    batch.record_sweep({"other", "", "", "", members}, {}, 2);
    for (auto& member : members) member.variant += "2";
    batch.record_sweep({"third", "", "", "", members}, {}, 3);
    batch.commit();
  }
  CHECK(pairs_of(database) == "3 pairs, 0 unpaired");
  BestRequest request;
  request.split = "test";
  request.top = 10;
  CHECK(best(results::ScoreReader(database.file()), request).trials.size() == 6);
}

}  // namespace petlab::questions
