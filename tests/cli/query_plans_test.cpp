// How SQLite means to answer what the commands that answer questions ask of it.
#include <regex>
#include <sstream>

#include "cli/command_line.h"
#include "tests/reports/make_database.h"
#include "tests/results/counted_statements.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

namespace petlab::cli {
namespace {

// What has rows for each trial and metric.
const char* const kMetrics[] = {"metric_values", "selected_values"};

std::string asked(std::vector<std::string> words) {
  words.insert(words.begin(), "petlab");
  std::vector<const char*> arguments;
  for (const std::string& word : words) arguments.push_back(word.c_str());
  std::istringstream in;
  std::ostringstream out;
  std::ostringstream err;
  INFO(words.at(1));
  const int code = run(static_cast<int>(words.size()), arguments.data(), {in, out, err});
  INFO(err.str());
  REQUIRE(code == kDone);
  return out.str();
}

// What these tables are called in a statement, or in a view that it reads.
std::set<std::string> names_of_metrics(const std::string& sql) {
  static const std::regex named(R"(\b(?:metric|selected)_values(?: AS)? ([a-z]\w*))");
  std::set<std::string> names(std::begin(kMetrics), std::end(kMetrics));
  for (std::sregex_iterator found(sql.begin(), sql.end(), named), end; found != end; ++found) {
    names.insert((*found)[1]);
  }
  return names;
}

// The steps of a plan that go through all of such a table.
std::vector<std::string> scans(const std::filesystem::path& file, const std::string& sql,
                               const std::string& views, int& searches) {
  std::vector<std::string> found;
  const std::set<std::string> names = names_of_metrics(sql + views);
  for (const std::string& step : testing::query_plan(file, sql)) {
    for (const std::string& name : names) {
      if (step == "SCAN " + name || step.starts_with("SCAN " + name + " ")) found.push_back(step);
      searches += step.starts_with("SEARCH " + name + " ") ? 1 : 0;
    }
  }
  return found;
}

TEST_CASE("No question goes through the metrics of all trials", "[cli]") {
  const testing::TempDir folder;
  std::vector<testing::MadeTrial> made;
  for (int i = 0; i < 40; ++i) {
    testing::MadeTrial trial;
    trial.id = "00000000000000" + std::to_string(10 + i);
    trial.variant = i % 2 == 0 ? "a" : "b";
    trial.seed = i / 4;
    trial.task = i % 4 < 2 ? "cola" : "rte";
    trial.scores = {{"accuracy", 0.5 + i / 100.0}, {"matthews", 0.25}};
    made.push_back(std::move(trial));
  }
  const std::filesystem::path file = folder.path() / "many.db";
  testing::make_database(file, "s", made);
  const std::string db = file.string();
  const std::string views = asked({"query", "SELECT sql FROM sqlite_schema WHERE type = 'view'",
                                   "--db", db, "--format", "csv"});
  const std::vector<std::vector<std::string>> questions = {
      {"results"},
      {"results", "--by", "variant", "--pivot", "task", "--metric", "accuracy"},
      {"results", "--where", "task=cola and seed<5"},
      {"best", "--split", "test", "--metric", "accuracy"},
      {"compare", "a", "b"},
      {"show", made[3].id},
      {"diff", made[3].id, made[4].id},
      {"history", made[3].id, "--metric", "accuracy"},
      {"query", "SELECT task, avg(value) FROM sweep_results WHERE name = 'accuracy' GROUP BY task"},
      {"query", "SELECT step, value FROM metrics WHERE trial_id = '" + made[3].id + "'"},
      {"report", "sweep", "--sweep", "s"}};
  for (std::vector<std::string> words : questions) {
    words.insert(words.end(), {"--db", db});
    std::string printed;
    const std::set<std::string> statements = testing::sql_in([&] { printed = asked(words); });
    INFO(words[0] << ' ' << words[1]);
    CHECK(printed.size() > 20);
    int searches = 0;
    for (const std::string& sql : statements) {
      if (!sql.starts_with("SELECT") && !sql.starts_with("WITH")) continue;
      INFO(sql);
      CHECK(scans(file, sql, views, searches) == std::vector<std::string>{});
    }
    // The statements that were meant have been looked at.
    CHECK(searches > 0);
  }
  int none = 0;
  CHECK(scans(file, "SELECT count(*) FROM metric_values m", views, none).size() == 1);
}

}  // namespace
}  // namespace petlab::cli
