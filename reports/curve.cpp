#include "reports/curve.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <stdexcept>
#include <string_view>

#include "base/nearest_word.h"
#include "questions/conditions.h"
#include "reports/selection.h"

namespace petlab::reports {
namespace {

const char kStep[] = "step";

std::string field(const std::string& name, const std::string& option) {
  try {
    return questions::field_named(name).name;
  } catch (const std::invalid_argument& error) {
    throw std::invalid_argument(fmt::format("{}: {}", option, error.what()));
  }
}

// Resolves the names in a request against the data.
class CurveMaker {
 public:
  CurveMaker(const CurveRequest& request, const Dataset& data) : request_(request), data_(data) {
    if (const auto known = data.known_words.find("name"); known != data.known_words.end()) {
      metrics_ = known->second;
    }
  }

  Definition make() {
    if (request_.x.empty() || request_.y.empty()) {
      throw std::invalid_argument(
          "report curve needs --x FIELD and --y METRIC, as in --x module_bottleneck --y accuracy");
    }
    Definition result;
    result.file = "curve";
    result.name = "curve";
    FigureSpec figure;
    const std::string x = field(request_.x, "--x");
    figure.x.cells.value = x;
    figure.x.log = request_.log_x;
    figure.y.log = request_.log_y;
    result.where.conditions = request_.where;
    std::set<std::string> tasks;
    if (metrics_.contains(request_.y)) {
      figure.y.where.conditions.push_back(questions::one_of("name", {request_.y}));
      const std::string split = split_of(x, result.where);
      figure.y.where.conditions.push_back(questions::one_of("split", {split}));
      tasks = tasks_with(split, result.where);
      leave_out_tasks_without(tasks, result.where, figure.y.where);
      figure.y.name = fmt::format("{} ({})", request_.y, split);
    } else {
      figure.y.cells.value = field_of_y(x);
    }
    result.about = fmt::format("{} by {}", request_.y, x);
    figure.title = result.about;
    SeriesSpec series;
    for (const std::string& name : request_.series)
      series.line.each.push_back(field(name, "--series"));
    if (series.line.each.empty()) series.line.each = usual_series(tasks, result.where);
    if (series.line.each.empty()) series.line.key = series.line.name = request_.y;
    series.line.line = 1;
    figure.series.push_back(std::move(series));
    result.sections.emplace_back(std::move(figure));
    return result;
  }

 private:
  std::string field_of_y(const std::string& x) const {
    const std::vector<std::string_view> metrics(metrics_.begin(), metrics_.end());
    // Learning curves need metrics, and a misspelt metric resembles no field.
    if (x == kStep || !base::nearest_word(request_.y, metrics).empty()) {
      throw std::invalid_argument("--y: " + base::unknown_word("metric", request_.y, metrics));
    }
    return field(request_.y, "--y");
  }

  template <typename Each>
  void each_score(const Selection& where, Each each) const {
    for (const Score& score : data_.scores) {
      if (score.series->name == request_.y && matches(where, score) &&
          matches(where, data_.trials[score.trial])) {
        each(score);
      }
    }
  }

  std::string split_of(const std::string& x, const Selection& where) const {
    if (!request_.split.empty()) return request_.split;
    std::set<std::string> splits;
    each_score(where, [&](const Score& score) { splits.insert(score.series->split); });
    const std::string usual = x == kStep ? "validation" : "test";
    if (splits.contains(usual) || splits.empty()) return usual;
    return *splits.begin();
  }

  std::set<std::string> tasks_with(const std::string& split, const Selection& where) const {
    std::set<std::string> tasks;
    each_score(where, [&](const Score& score) {
      if (score.series->split == split) tasks.insert(score.series->task);
    });
    return tasks;
  }

  // Excludes tasks whose trials have finished without such a value: they will never have one.
  void leave_out_tasks_without(const std::set<std::string>& tasks, const Selection& where,
                               Selection& values) const {
    std::set<std::string> all;
    std::set<std::string> without;
    for (const Trial& trial : data_.trials) {
      if (!matches(where, trial)) continue;
      for (const std::string& task : trial.tasks) {
        all.insert(task);
        if (has_result(trial.state) && !tasks.contains(task)) without.insert(task);
      }
      all.insert(trial.other_tasks.begin(), trial.other_tasks.end());
    }
    if (without.empty() || without == all) return;
    Condition with = questions::one_of("task", {});
    for (const std::string& task : all) {
      if (!without.contains(task)) with.values.emplace_back(task);
    }
    values.conditions.push_back(std::move(with));
  }

  std::vector<std::string> usual_series(const std::set<std::string>& tasks,
                                        const Selection& where) const {
    std::vector<std::string> each;
    const auto named = [&](const Trial& trial) {
      return !trial.variant.empty() && matches(where, trial);
    };
    if (std::any_of(data_.trials.begin(), data_.trials.end(), named)) each.emplace_back("variant");
    if (tasks.size() > 1) each.emplace_back("task");
    return each;
  }

  const CurveRequest& request_;
  const Dataset& data_;
  std::set<std::string> metrics_;  // known to petlab or to the database
};

}  // namespace

Wanted wanted_by(const CurveRequest& request) {
  Wanted wanted;
  wanted.where = request.where;
  const auto add = [&](const std::string& name) {
    if (const auto word = results::find_word(name)) wanted.fields.insert(word->name);
  };
  add(request.x);
  add(request.y);
  std::for_each(request.series.begin(), request.series.end(), add);
  for (const Condition& condition : request.where) wanted.fields.insert(condition.word.name);
  wanted.series = [&request](const Series& series) { return series.name == request.y; };
  wanted.trial = [](const Trial&) { return true; };
  wanted.every_step = request.x == kStep;
  return wanted;
}

Definition curve_definition(const CurveRequest& request, const Dataset& data) {
  return CurveMaker(request, data).make();
}

}  // namespace petlab::reports
