// SQLite's query plans for the commands that answer questions.
#include <regex>
#include <sstream>

#include "cli/command_line.h"
#include "tests/reports/make_database.h"
#include "tests/results/counted_statements.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

namespace petlab::cli {
namespace {

// The tables with rows for each trial and metric.
const char* const kMetrics[] = {"metric_values", "selected_values"};

std::string output_of(std::vector<std::string> words) {
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

// The names and aliases of these tables in a statement and in the views that it reads.
std::set<std::string> names_of_metrics(const std::string& sql) {
  static const std::regex named(R"(\b(?:metric|selected)_values(?: AS)? ([a-z]\w*))");
  std::set<std::string> names(std::begin(kMetrics), std::end(kMetrics));
  for (std::sregex_iterator found(sql.begin(), sql.end(), named), end; found != end; ++found) {
    names.insert((*found)[1]);
  }
  return names;
}

// The steps of a query plan that scan such a table. Counts its index searches in `searches`.
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

TEST_CASE("No question scans the metrics of all trials or sorts the trials", "[cli]") {
  const testing::TempDir folder;
  std::vector<testing::MadeTrial> trials;
  for (int i = 0; i < 40; ++i) {
    testing::MadeTrial trial;
    trial.id = "00000000000000" + std::to_string(10 + i);
    trial.variant = i % 2 == 0 ? "a" : "b";
    trial.seed = i / 4;
    trial.task = i % 4 < 2 ? "cola" : "rte";
    trial.scores = {{"accuracy", 0.5 + i / 100.0}, {"matthews", 0.25}};
    trials.push_back(std::move(trial));
  }
  const std::filesystem::path file = folder.path() / "many.db";
  testing::make_database(file, "s", trials);
  const std::string db = file.string();
  const std::string views = output_of({"query", "SELECT sql FROM sqlite_schema WHERE type = 'view'",
                                       "--db", db, "--format", "csv"});
  const std::vector<std::vector<std::string>> questions = {
      {"results"},
      {"results", "--by", "variant", "--pivot", "task", "--metric", "accuracy"},
      {"results", "--where", "task=cola and seed<5"},
      {"best", "--split", "test", "--metric", "accuracy"},
      {"compare", "a", "b"},
      {"show", trials[3].id},
      {"diff", trials[3].id, trials[4].id},
      {"history", trials[3].id, "--metric", "accuracy"},
      {"query", "SELECT task, avg(value) FROM sweep_results WHERE name = 'accuracy' GROUP BY task"},
      {"query", "SELECT step, value FROM metrics WHERE trial_id = '" + trials[3].id + "'"},
      {"report", "sweep", "--sweep", "s"}};
  int of_members = 0;
  for (std::vector<std::string> words : questions) {
    words.insert(words.end(), {"--db", db});
    std::string printed;
    const std::set<std::string> statements = testing::sql_in([&] { printed = output_of(words); });
    INFO(words[0] << ' ' << words[1]);
    CHECK(printed.size() > 20);
    int searches = 0;
    for (const std::string& sql : statements) {
      if (!sql.starts_with("SELECT") && !sql.starts_with("WITH")) continue;
      INFO(sql);
      CHECK(scans(file, sql, views, searches) == std::vector<std::string>{});
      // The trials of one sweep are found from its name, and sorted.
      if (sql.find(" LEFT JOIN sweep_trials ") == std::string::npos ||
          sql.find("w.name IN") != std::string::npos) {
        continue;
      }
      ++of_members;
      for (const std::string& step : testing::query_plan(file, sql)) {
        CHECK_THAT(step, !Catch::EndsWith(" ORDER BY"));
      }
    }
    // The intended statements were examined.
    CHECK(searches > 0);
  }
  CHECK(of_members > 0);
  int none = 0;
  CHECK(scans(file, "SELECT count(*) FROM metric_values m", views, none).size() == 1);
}

}  // namespace
}  // namespace petlab::cli
