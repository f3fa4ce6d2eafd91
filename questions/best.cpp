#include "questions/best.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <stdexcept>

#include "metrics/metric_table.h"
#include "questions/collected.h"
#include "questions/conditions.h"
#include "questions/values.h"
#include "sweeps/catalog.h"

namespace petlab::questions {
namespace {

// The metric that ranks a task's trials, chosen from those reported.
std::string metric_of(const std::string& task, const std::set<std::string>& reported,
                      const BestRequest& request) {
  if (!request.metric.empty()) return request.metric;
  if (const sweeps::TaskDeclaration* known = sweeps::find_task(task)) {
    for (const std::string& name : known->select_by) {
      if (reported.contains(name)) return name;
    }
  }
  std::set<std::string> scores(reported);
  scores.erase("loss");
  if (scores.size() == 1) return *scores.begin();
  throw std::invalid_argument(fmt::format(
      "task {} has {}: name one with --metric", task,
      scores.empty() ? "no metric but the loss" : fmt::format("{}", fmt::join(scores, ", "))));
}

bool is_highest_best(const std::string& metric, const BestRequest& request) {
  if (request.higher_is_better) return *request.higher_is_better;
  if (const std::optional<bool> known = metrics::higher_is_better(metric)) return *known;
  throw std::invalid_argument(fmt::format(
      "it is not known whether more of {} is better: say --highest or --lowest", metric));
}

}  // namespace

BestResult best(const results::ScoreReader& reader, const BestRequest& request) {
  results::ScoreQuestion question;
  if (!request.metric.empty()) question.metrics = {request.metric};
  check_names(reader, question.metrics, {request.split});
  question.where = request.where;
  question.splits = {request.split};
  if (request.split != "test") question.splits.emplace_back("test");
  question.members = results::ScoreQuestion::Members::joined;
  question.fields = {results::word_named("variant"), results::word_named("seed")};
  const Collected collected(reader, question);
  if (collected.scores().empty()) {
    explain_nothing(reader, request.where);
    throw std::invalid_argument(
        collected.rows().empty()
            ? "no trial is selected"
            : fmt::format("{} trials are selected, and none has such a score yet",
                          collected.rows().size()));
  }

  std::map<std::string, std::set<std::string>> reported;  // metrics by task
  for (const Collected::Score& score : collected.scores()) {
    const results::SeriesName& series = collected.series()[score.series];
    if (series.split == request.split) reported[series.task].insert(series.name);
  }
  if (reported.empty()) {
    throw std::invalid_argument(fmt::format(
        "no selected trial has a score of split {}: choose another with --split", request.split));
  }
  struct Candidate {
    std::size_t row = 0;
    double value = 0;
    std::optional<double> test;
  };
  BestResult result;
  std::vector<std::size_t> rows;  // rows of result.trials
  for (const auto& [task, metrics] : reported) {
    const std::string metric = metric_of(task, metrics, request);
    const bool higher = is_highest_best(metric, request);
    std::vector<Candidate> candidates;
    for (std::size_t row = 0; row < collected.rows().size(); ++row) {
      const Collected::Row& trial = collected.rows()[row];
      std::optional<double> value;
      std::optional<double> test;
      for (std::size_t at = trial.first_score; at < trial.end_score; ++at) {
        const Collected::Score& score = collected.scores()[at];
        const results::SeriesName& series = collected.series()[score.series];
        if (series.task != task || series.name != metric) continue;
        if (series.split == request.split) value = score.value;
        if (series.split == "test") test = score.value;
      }
      if (value) candidates.push_back({row, *value, test});
    }
    std::stable_sort(candidates.begin(), candidates.end(),
                     [&](const Candidate& a, const Candidate& b) {
                       return higher ? a.value > b.value : a.value < b.value;
                     });
    if (static_cast<std::int64_t>(candidates.size()) > request.top) {
      candidates.resize(static_cast<std::size_t>(request.top));
    }
    for (const Candidate& one : candidates) {
      result.trials.push_back({task, collected.trial_id(one.row), metric, one.value, one.test, {}});
      rows.push_back(one.row);
    }
  }
  const auto is_shown = [&](std::size_t field) {
    const std::string& name = collected.fields()[field].name;
    const bool named = name == "variant" && collected.value(0, field) != results::Value();
    return name == "seed" || named || collected.differs(field);
  };
  for (std::size_t field = 0; field < collected.fields().size(); ++field) {
    if (!is_shown(field)) continue;
    result.fields.push_back(collected.fields()[field].name);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      result.trials[i].fields.push_back(collected.value(rows[i], field));
    }
  }
  return result;
}

}  // namespace petlab::questions
