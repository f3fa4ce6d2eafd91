#include "questions/ranking.h"

#include <fmt/format.h>

#include <cmath>

#include "tests/questions/helpers.h"
#include "tests/support/catch.h"

namespace petlab::questions {
namespace {

// Each side with its average rank and its letters, then the notes; or the error message.
std::vector<std::string> ranked(const SmallDatabase& database, const std::string& names) {
  RankingRequest request;
  for (const char name : names) request.sides.push_back(parse_side(std::string(1, name)));
  std::vector<std::string> lines;
  try {
    const RankingResult result = rank(results::ScoreReader(database.file()), request);
    for (const Ranking& one : result.rankings) {
      for (std::size_t at = 0; at < one.sides.size(); ++at) {
        lines.push_back(fmt::format("{} {} {} {}", one.sides[at], one.ranks.average_ranks[at],
                                    one.nemenyi[at], one.wilcoxon[at]));
      }
    }
    lines.insert(lines.end(), result.notes.begin(), result.notes.end());
  } catch (const std::invalid_argument& error) {
    lines.emplace_back(error.what());
  }
  return lines;
}

}  // namespace

TEST_CASE("Variants are ranked over tasks by their means over seeds", "[questions]") {
  SmallDatabase database;
  const std::vector<std::string> tasks = {"cola", "mnli", "mrpc", "qnli", "qqp",
                                          "rte",  "sst2", "stsb", "wnli", "zx"};
  for (const std::string& task : tasks) {
    for (const std::uint64_t seed : {1, 2}) {
      const double noise = seed == 1 ? 0.25 : -0.25;
      const auto config = [&](std::int64_t bottleneck) {
        return SmallDatabase::config(task, seed, bottleneck);
      };
      database.scored("c", config(1), 0.25 + noise);
      database.scored("a", config(2), 0.75 + noise);
      database.scored("b", config(3), (task < "qr" ? 0.8125 : 0.6875) + noise);
    }
  }
  CHECK(ranked(database, "ab") ==
        std::vector<std::string>{"ranks: found 2 variants, expected at least 3"});
  // a and b win five tasks each; c is always last.
  CHECK(ranked(database, "cab") ==
        std::vector<std::string>{
            "a 1.5 a a", "b 1.5 a a", "c 3 b b",
            "accuracy: Friedman's test over 10 tasks gives p = 0.0006; by Nemenyi's test, average "
            "ranks differ if they are more than 1.05 apart; by Wilcoxon's test, a, b > c"});
  database.scored("a", SmallDatabase::config("odd", 1), std::nullopt);
  database.scored("b", SmallDatabase::config("odd", 1), 0.5);
  database.scored("c", SmallDatabase::config("odd", 1), 0.5);
  const std::vector<std::string> with_note = ranked(database, "cab");
  REQUIRE(with_note.size() == 5);
  CHECK(with_note[3] == "accuracy: left out without a defined score of every variant: odd");
}

TEST_CASE("Variants are not ranked over one task, or by a metric of unknown direction",
          "[questions]") {
  SmallDatabase database;
  for (const char* variant : {"a", "b", "c"}) {
    database.scored(variant, SmallDatabase::config("cola", 1), 0.5);
    database.scored(variant, SmallDatabase::config("rte", 1), 0.5, "perplexity");
    database.scored(variant, SmallDatabase::config("mrpc", 1), 0.5, "perplexity");
  }
  CHECK(ranked(database, "abc") ==
        std::vector<std::string>{
            "ranks: no metric has a score of every variant on 2 tasks; found 1"});
}

TEST_CASE("Sides are called different only after Friedman's test", "[questions]") {
  const auto ranked_by = [](const std::vector<std::vector<double>>& tasks) {
    std::vector<RankedTask> all;
    for (const std::vector<double>& scores : tasks) {
      RankedTask& task = all.emplace_back();
      task.name = std::to_string(all.size());
      for (const double score : scores) task.scores.push_back({{"1", score}});
    }
    return rank_over_tasks({"a", "b", "c"}, all, 0.05);
  };
  const Ranking undecided = ranked_by({{3, 2, 1}, {1, 2, 3}});
  CHECK_FALSE(undecided.differs);
  CHECK(undecided.wilcoxon == std::vector<std::string>{"a", "a", "a"});
  CHECK(tests_text(undecided) ==
        "Friedman's test over 2 tasks gives p = 1.0000, so no two variants are called different");
  CHECK(tests_text(ranked_by({{1, 1, 1}, {2, 2, 2}})) ==
        "all variants are equal on each of the 2 tasks");
  // The smallest possible p over five tasks is 2 / 2^5, which Holm's adjustment multiplies by 3.
  const Ranking few = ranked_by(std::vector<std::vector<double>>(5, {1, 2, 3}));
  CHECK(few.sides == std::vector<std::string>{"c", "b", "a"});
  CHECK(few.order == std::vector<std::size_t>{2, 1, 0});
  CHECK(few.nemenyi == std::vector<std::string>{"a", "ab", "b"});
  CHECK(tests_text(few) ==
        "Friedman's test over 5 tasks gives p = 0.0067; by Nemenyi's test, average ranks differ if "
        "they are more than 1.48 apart; Wilcoxon's test cannot tell any variants apart over fewer "
        "than 7 tasks");
  CHECK(fewest_wilcoxon_tasks(3, 0.05) == 7);
  CHECK(fewest_wilcoxon_tasks(12, 0.05) == 12);
}

}  // namespace petlab::questions
