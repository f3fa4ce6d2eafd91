#include "reports/ranks.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>

#include "reports/rank_diagram.h"
#include "reports/render.h"
#include "reports/report.h"
#include "reports/show.h"
#include "reports/vega.h"
#include "tests/metrics/golden_json.h"
#include "tests/reports/make_data.h"
#include "tests/support/catch.h"
#include "tests/support/golden.h"

namespace petlab::reports {
namespace {

using testing::DataMaker;
using testing::definition;

const char kByAccuracy[] =
    "where: {split: test}\nranks:\n  title: T\n  variants: [{each: variant}]\n"
    "  tasks: [{each: task, where: {name: accuracy}}]\n";

// Variants a, b and c on ten tasks with two seeds: a and b win five tasks each, c is always last.
DataMaker ten_tasks() {
  DataMaker make;
  for (int task = 0; task < 10; ++task) {
    for (const std::int64_t seed : {1, 2}) {
      const double noise = seed == 1 ? 0.125 : -0.125;
      const auto score = [&](const char* variant, double value) {
        make.score(make.trial(variant, seed, fmt::format("task{}", task)), "accuracy",
                   value + noise);
      };
      score("c", 0.25);
      score("a", 0.625);
      score("b", task < 5 ? 0.75 : 0.5);
    }
  }
  return make;
}

Report report_of(const std::string& text, const Dataset& data) {
  return make_report(definition(text), data, {});
}

Ranks ranks_of(const std::string& text, const Dataset& data) {
  return std::get<Ranks>(report_of(text, data).sections.at(0));
}

// Average ranks on the given tasks are exactly those of `scores`, which has a row for each task.
DataMaker scored(const std::vector<std::vector<double>>& scores) {
  DataMaker make;
  for (std::size_t task = 0; task < scores.size(); ++task) {
    for (std::size_t variant = 0; variant < scores[task].size(); ++variant) {
      const std::size_t trial =
          make.trial(fmt::format("v{}", variant), 1, fmt::format("task{:02}", task));
      make.score(trial, "accuracy", scores[task][variant]);
    }
  }
  return make;
}

// Eight tasks, each of which orders the variants by their index.
DataMaker ordered(std::size_t variants) {
  std::vector<double> scores;
  for (std::size_t variant = 0; variant < variants; ++variant) {
    scores.push_back(-static_cast<double>(variant));
  }
  return scored(std::vector<std::vector<double>>(8, scores));
}

TEST_CASE("Ranks are printed as compare --rank prints them", "[reports]") {
  CHECK(to_terminal(report_of(kByAccuracy, ten_tasks().data), {}) == R"(r
sweep s: 60 of 60 trials done

T
   average
      rank  nemenyi  wilcoxon
─────────────────────────────
a     1.50        a         a
b     1.50        a         a
c     3.00        b         b

Friedman's test over 10 tasks gives p = 0.0006; by Nemenyi's test, average ranks differ if they are more than 1.05 apart; by Wilcoxon's test, a, b > c
variants that share a letter do not differ significantly (level 0.05): by Nemenyi's critical difference, or by Wilcoxon's exact test over tasks with Holm's correction
tasks: task0, task1, task2, task3, task4, task5, task6, task7, task8, task9
)");
}

TEST_CASE("Ranks have their numbers in every format", "[reports]") {
  const Report report = report_of(kByAccuracy, ten_tasks().data);
  CHECK(to_csv(report) ==
        "row,average rank,nemenyi,wilcoxon\r\na,1.5,a,a\r\nb,1.5,a,a\r\nc,3,b,b\r\n");
  CHECK(to_markdown(report).find("| c | 3.00 | b | b |") != std::string::npos);
  CHECK(to_long_csv(report).find("r,a,,a,average_rank,average rank,number,1.5,") !=
        std::string::npos);
  const nlohmann::json section = nlohmann::json::parse(to_json(report)).at("sections").at(0);
  CHECK(section.at("kind") == "ranks");
  CHECK(section.at("missing").is_null());
  CHECK(section.at("tasks").size() == 10);
  const nlohmann::json& tests = section.at("tests");
  CHECK(tests.at("test") == "nemenyi");
  CHECK(tests.at("level") == 0.05);
  CHECK(tests.at("differs") == true);
  CHECK(tests.at("friedman_p").get<double>() == Approx(0.00055308437014783));
  CHECK(tests.at("nemenyi_groups") == nlohmann::json::parse(R"([["a", "b"]])"));
  CHECK(tests.at("wilcoxon_groups") == nlohmann::json::parse(R"([["a", "b"]])"));
  CHECK(tests.at("pairs").size() == 3);
  CHECK(tests.at("pairs").at(1).at("variants") == nlohmann::json::parse(R"(["a", "c"])"));
  CHECK(section.at("specification").at("layer").size() > 5);
  CHECK(section.at("rows").at(0).at("cells").at(0).at("mean") == 1.5);
  const std::string latex = to_latex(report);
  CHECK(latex.find("\\node[anchor=south] at (0.2620,20.0) {CD = 1.05};") != std::string::npos);
  CHECK(latex.find("\\caption{T. Friedman's test over 10 tasks gives p = 0.0006. Nemenyi's test "
                   "(level 0.05): critical difference CD = 1.05. bars connect variants that do not "
                   "differ significantly.}") != std::string::npos);
  const std::string html = to_html(report);
  CHECK(html.find("<summary>the ranks as a table</summary>") != std::string::npos);
  CHECK(html.find("the figure is not drawn here: ") != std::string::npos);
}

TEST_CASE("A diagram has the best variant on the left and bars over groups", "[reports]") {
  const Ranks ranks = ranks_of(kByAccuracy, ten_tasks().data);
  const RankDiagram diagram = lay_out(ranks);
  REQUIRE(diagram.bars.size() == 1);
  CHECK(diagram.bars[0].members == std::vector<std::size_t>{0, 1});
  CHECK_FALSE(diagram.has_dots);
  CHECK(has_scale(ranks));
  REQUIRE(diagram.labels.size() == 3);
  CHECK(diagram.labels[0].left);
  CHECK(diagram.labels[1].left);
  CHECK_FALSE(diagram.labels[2].left);
  const nlohmann::json specification = nlohmann::json::parse(to_vega_lite(ranks));
  CHECK(specification.at("title").at("text") == "T");
  CHECK(specification.at("title").at("subtitle").at(0) ==
        "Friedman's test over 10 tasks gives p = 0.0006");
  std::multiset<std::string> parts;
  for (const nlohmann::json& row : specification.at("data").at("values")) {
    parts.insert(row.at("part").get<std::string>());
    if (row.at("part") == "scale") {
      CHECK(row.at("x2").get<double>() - row.at("x").get<double>() ==
            Approx(ranks.ranking.ranks.critical_difference));
    }
  }
  CHECK(parts.count("left") == 2);
  CHECK(parts.count("right") == 1);
  CHECK(parts.count("number") == 3);
  CHECK(parts.count("bar") == 1);
}

TEST_CASE("Names and bars of a diagram never overlap", "[reports]") {
  for (const std::size_t variants : {3, 4, 6, 12, 31}) {
    INFO(variants);
    const Ranks ranks = ranks_of(kByAccuracy, ordered(variants).data);
    const RankDiagram diagram = lay_out(ranks);
    std::set<std::pair<bool, double>> places;
    double lowest = 0;
    for (const RankDiagram::Bar& bar : diagram.bars) lowest = std::max(lowest, bar.y);
    for (const RankDiagram::Label& label : diagram.labels) {
      CHECK(label.y > lowest + 8);
      CHECK(label.y < diagram.height);
      for (const auto& [left, y] : places) {
        CHECK((left != label.left || std::abs(y - label.y) > 15));
      }
      places.emplace(label.left, label.y);
    }
    for (const RankDiagram::Bar& one : diagram.bars) {
      for (const RankDiagram::Bar& other : diagram.bars) {
        if (&one == &other || one.y != other.y) continue;
        CHECK((one.to < other.from || other.to < one.from));
      }
    }
  }
}

TEST_CASE("A definition chooses the test of the bars and its level", "[reports]") {
  const std::string wilcoxon = std::string(kByAccuracy) + "  test: wilcoxon\n  level: 0.01\n";
  const Ranks ranks = ranks_of(wilcoxon, ten_tasks().data);
  CHECK_FALSE(has_scale(ranks));
  CHECK(caption(ranks) ==
        std::vector<std::string>{
            "Friedman's test over 10 tasks gives p = 0.0006",
            "Wilcoxon's exact test over tasks with Holm's correction (level 0.01)",
            "bars connect variants that do not differ significantly"});
  // The smallest possible p over seven tasks and 15 pairs is 15 / 64.
  const Ranks few = ranks_of(std::string(kByAccuracy) + "  test: wilcoxon\n",
                             scored(std::vector<std::vector<double>>(7, {6, 5, 4, 3, 2, 1})).data);
  CHECK(caption(few).at(3) == "this test cannot tell any variants apart over fewer than 10 tasks");
  CHECK(few.groups() == std::vector<std::vector<std::size_t>>{{0, 1, 2, 3, 4, 5}});
}

TEST_CASE("Pairs are called different only if Friedman's test shows a difference", "[reports]") {
  DataMaker make = scored({{4, 3, 2, 1}, {4, 3, 2, 1}, {1, 2, 3, 4}});
  const Ranks ranks = ranks_of(kByAccuracy, make.data);
  CHECK_FALSE(ranks.ranking.differs);
  CHECK(ranks.ranking.nemenyi == std::vector<std::string>(4, "a"));
  CHECK(lay_out(ranks).bars.size() == 1);
  CHECK(
      caption(ranks) ==
      std::vector<std::string>{
          "Friedman's test over 3 tasks gives p = 0.8013, so no two variants are called different",
          "the bar connects all variants"});
}

TEST_CASE("A bar over a variant outside its group has dots at its members", "[reports]") {
  // From golden statistics (clique_with_a_gap).
  const Ranks ranks =
      ranks_of(std::string(kByAccuracy) + "  test: wilcoxon\n", scored({{0.07, 0.33, -0.09, 1.11},
                                                                        {0.17, 0.43, 1.18, 1.18},
                                                                        {0.11, 0.08, 2.47, 0.49},
                                                                        {0.16, 0.11, -2.11, 0.72},
                                                                        {0.01, 0.11, 0.13, 0.83},
                                                                        {-0.08, 0.32, -0.21, 0.42},
                                                                        {-0.12, 0.26, 1.01, 0.48},
                                                                        {0.04, 0.31, -0.21, 0.93},
                                                                        {0.02, 0.2, 0.18, 1.18},
                                                                        {-0.06, 0.11, -0.97, 0.98},
                                                                        {0.03, 0.38, -0.06, 0.82},
                                                                        {0.01, 0.23, -3.43, 1.21}})
                                                                    .data);
  const RankDiagram diagram = lay_out(ranks);
  CHECK(diagram.has_dots);
  std::size_t dots = 0;
  const nlohmann::json specification = nlohmann::json::parse(to_vega_lite(ranks));
  for (const nlohmann::json& row : specification.at("data").at("values")) {
    dots += row.at("part") == "dot" ? 1 : 0;
  }
  std::size_t members = 0;
  for (const RankDiagram::Bar& bar : diagram.bars) members += bar.members.size();
  CHECK(dots == members);
}

TEST_CASE("Each task may have its own metric and direction", "[reports]") {
  DataMaker make;
  for (const char* task : {"cola", "rte", "lm"}) {
    for (const auto& [variant, value] : {std::pair("a", 3.0), {"b", 2.0}, {"c", 1.0}}) {
      const std::string metric = task == std::string("cola")  ? "matthews"
                                 : task == std::string("rte") ? "accuracy"
                                                              : "perplexity";
      make.score(make.trial(variant, 1, task), metric, value);
    }
  }
  const std::string tasks =
      "where: {split: test}\nranks:\n  variants: [{each: variant}]\n  tasks:\n"
      "    - {key: cola, where: {task: cola, name: matthews}}\n"
      "    - {key: rte, where: {task: rte, name: accuracy}}\n";
  const std::string lm = "    - {key: lm, where: {task: lm, name: perplexity}";
  const Ranks unknown = ranks_of(tasks + lm + "}\n", make.data);
  CHECK(unknown.ranking.tasks == std::vector<std::string>{"cola", "rte"});
  CHECK(unknown.notes ==
        std::vector<std::string>{"left out because it is not known whether higher is better "
                                 "(better: higher or lower says so): lm"});
  const Ranks lower = ranks_of(tasks + lm + ", better: lower}\n", make.data);
  CHECK(lower.ranking.tasks == std::vector<std::string>{"cola", "rte", "lm"});
  CHECK(lower.ranking.ranks.average_ranks ==
        std::vector<double>{(1 + 1 + 3) / 3.0, 2, (3 + 3 + 1) / 3.0});
}

TEST_CASE("A report says why it has no ranks", "[reports]") {
  const auto missing = [](const std::string& text, const Dataset& data) {
    return ranks_of(text, data).ranking.missing;
  };
  CHECK(missing(kByAccuracy, scored({{1, 2}, {1, 2}}).data) ==
        "found 2 variants, expected at least 3");
  CHECK(missing(kByAccuracy, scored({{1, 2, 3}}).data) ==
        "found 1 task with a defined score of every variant, expected at least 2");
  CHECK(missing(kByAccuracy, {}) == "found 0 variants, expected at least 3");
  CHECK(missing(kByAccuracy, scored(std::vector<std::vector<double>>(501, {1, 2, 3})).data) ==
        "found 501 tasks, expected at most 500");
  DataMaker twice = ten_tasks();
  twice.score(twice.trial("a", 2, "task3", {{"module_rank", std::int64_t{8}}}), "accuracy", 0.5);
  CHECK(missing(kByAccuracy, twice.data) ==
        "a has several trials with seed 2 for task3, expected one (they differ in module_rank); "
        "choose with where");

  const Report report = report_of(kByAccuracy, scored({{1, 2, 3}}).data);
  CHECK(
      to_terminal(report, {})
          .find("\nno ranks: found 1 task with a defined score of every variant, expected at least "
                "2\n") != std::string::npos);
  CHECK(to_csv(report) == "row,average rank,nemenyi,wilcoxon\r\nv0,,,\r\nv1,,,\r\nv2,,,\r\n");
  const nlohmann::json section = nlohmann::json::parse(to_json(report)).at("sections").at(0);
  CHECK(section.at("tests").is_null());
  CHECK(section.at("specification").at("title").at("subtitle").at(0) ==
        "no diagram: found 1 task with a defined score of every variant, expected at least 2");
  CHECK(to_latex(report).find("\\caption{T. no diagram: found 1 task") != std::string::npos);
  CHECK(to_html(report).find("<li>no diagram: found 1 task") != std::string::npos);
}

TEST_CASE("Ranks note tasks that are left out and seeds that are missing", "[reports]") {
  DataMaker make = ten_tasks();
  make.score(make.trial("a", 1, "odd"), "accuracy", 0.5);
  make.score(make.trial("b", 1, "odd"), "accuracy", std::nullopt);
  make.score(make.trial("c", 1, "odd"), "accuracy", 0.5);
  make.trial("a", 3, "task1");
  make.data.trials.back().state = "new";
  const Ranks ranks = ranks_of(kByAccuracy, make.data);
  CHECK(ranks.ranking.tasks.size() == 10);
  CHECK(ranks.notes ==
        std::vector<std::string>{"left out without a defined score of every variant: odd",
                                 "means over fewer seeds than planned: a for task1 (2 of 3)"});
  // All trials of a variant are those of its cell.
  const Table table = table_of_ranks(ranks);
  REQUIRE(table.rows.size() == 3);
  CHECK(table.cells[0][0].trials.ids->size() == 22);
}

TEST_CASE("Ranks are of measured values only", "[reports]") {
  const Report report = report_of(kByAccuracy, ten_tasks().data);
  for (const Show show : {Show::published, Show::difference}) {
    const Report hidden = shown(report, show);
    CHECK(std::get<Ranks>(hidden.sections[0]).ranking.missing ==
          "ranks are of measured values, which this report does not show");
    CHECK_FALSE(to_terminal(hidden, {}).empty());
  }
  CHECK(to_csv(shown(report, Show::measured)) == to_csv(report));
}

TEST_CASE("A report's ranks match scipy, autorank and scikit-posthocs", "[reports][golden]") {
  const auto folder = testing::golden("statistics");
  if (!folder) return;
  int ran = 0;
  const nlohmann::json file = testing::read_json(*folder / "ranks.json");
  for (const nlohmann::json& row : file.at("cases")) {
    INFO(row.at("name").get<std::string>());
    std::vector<std::vector<double>> scores;
    for (const nlohmann::json& task : row.at("scores")) scores.push_back(testing::numbers(task));
    const nlohmann::json section =
        nlohmann::json::parse(to_json(report_of(kByAccuracy, scored(scores).data)))
            .at("sections")
            .at(0);
    std::map<std::string, double> averages;
    for (const nlohmann::json& variant : section.at("rows")) {
      averages[variant.at("key")] = variant.at("cells").at(0).at("mean").get<double>();
    }
    const std::vector<double> expected = testing::numbers(row.at("average_ranks"));
    REQUIRE(averages.size() == expected.size());
    for (std::size_t at = 0; at < expected.size(); ++at) {
      CHECK(averages.at(fmt::format("v{}", at)) == Approx(expected[at]));
    }
    const nlohmann::json& tests = section.at("tests");
    const bool undefined =
        row.at("friedman").is_null() || row.at("friedman").at("p") == "undefined";
    CHECK(tests.at("friedman_p").is_null() == undefined);
    if (!undefined) {
      const auto p = row.at("friedman").at("p").get<double>();
      CHECK(tests.at("friedman_p").get<double>() == Approx(p));
      CHECK(tests.at("differs") == (p <= 0.05));
    }
    if (tests.at("differs") == true) {
      for (const auto& [ours, theirs] :
           {std::pair("nemenyi_groups", &row.at("nemenyi").at("groups")),
            std::pair("wilcoxon_groups", &row.at("wilcoxon_holm").at("cliques"))}) {
        std::set<std::set<std::string>> groups;
        for (const nlohmann::json& group : tests.at(ours))
          groups.insert({group.begin(), group.end()});
        std::set<std::set<std::string>> wanted;
        for (const nlohmann::json& group : *theirs) {
          std::set<std::string> names;
          for (const nlohmann::json& at : group) names.insert(fmt::format("v{}", at.get<int>()));
          wanted.insert(std::move(names));
        }
        CHECK(groups == wanted);
      }
    }
    ++ran;
  }
  testing::golden_ran("statistics/ranks_in_reports", ran);
}

}  // namespace
}  // namespace petlab::reports
