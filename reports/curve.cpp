#include "reports/curve.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <stdexcept>

#include "questions/conditions.h"
#include "reports/selection.h"
#include "reports/words.h"

namespace petlab::reports {
namespace {

const char kStep[] = "step";

std::string underscored(std::string name) {
  std::replace(name.begin(), name.end(), '.', '_');
  return name;
}

// Finds what a request names in the data.
class CurveMaker {
 public:
  CurveMaker(const CurveRequest& request, const Dataset& data) : request_(request), data_(data) {
    fields_.insert({kStep, "bls_percent", "ft_params_percent", "task", "split", "name"});
    fields_.insert(data.other_fields.begin(), data.other_fields.end());
    fields_.insert(data.configuration.begin(), data.configuration.end());
    for (const Trial& trial : data.trials) {
      for (const auto& [name, value] : trial.fields) fields_.insert(name);
    }
  }

  Definition make() {
    if (request_.x.empty() || request_.y.empty()) {
      throw std::invalid_argument(
          "report curve needs --x FIELD and --y METRIC, as in --x module_bottleneck --y accuracy");
    }
    Definition made;
    made.file = "curve";
    made.name = "curve";
    FigureSpec figure;
    const std::string x = field(request_.x, "--x");
    figure.x.cells.value = x;
    figure.x.log = request_.log_x;
    figure.y.log = request_.log_y;
    made.where = request_.where;
    std::set<std::string> tasks;
    const auto metrics = data_.known_words.find("name");
    if (metrics != data_.known_words.end() && metrics->second.contains(request_.y)) {
      figure.y.where.conditions.push_back(questions::one_of("name", {request_.y}));
      const std::string split = split_of(x, made.where);
      figure.y.where.conditions.push_back(questions::one_of("split", {split}));
      tasks = tasks_with(split, made.where);
      leave_out_tasks_without(tasks, made.where, figure.y.where);
      figure.y.name = fmt::format("{} ({})", request_.y, split);
    } else if (x != kStep && fields_.contains(underscored(request_.y))) {
      figure.y.cells.value = underscored(request_.y);
    } else {
      unknown_y();
    }
    made.about = fmt::format("{} by {}", request_.y, x);
    figure.title = made.about;
    SeriesSpec series;
    for (const std::string& name : request_.series)
      series.line.each.push_back(field(name, "--series"));
    if (series.line.each.empty()) series.line.each = usual_series(tasks, made.where);
    if (series.line.each.empty()) series.line.key = series.line.name = request_.y;
    series.line.line = 1;
    figure.series.push_back(std::move(series));
    made.sections.emplace_back(std::move(figure));
    return made;
  }

 private:
  std::string field(const std::string& name, const std::string& option) const {
    const std::string wanted = underscored(name);
    if (fields_.contains(wanted)) return wanted;
    const std::vector<std::string> all(fields_.begin(), fields_.end());
    throw std::invalid_argument(fmt::format("{} is '{}', which is no field of these trials{}",
                                            option, name, did_you_mean(wanted, all)));
  }

  [[noreturn]] void unknown_y() const {
    std::set<std::string> known = fields_;
    if (const auto metrics = data_.known_words.find("name"); metrics != data_.known_words.end()) {
      known.insert(metrics->second.begin(), metrics->second.end());
    }
    const std::vector<std::string> all(known.begin(), known.end());
    throw std::invalid_argument(fmt::format(
        "--y is '{}', which is no metric{} that petlab or the database knows{}", request_.y,
        request_.x == kStep ? "" : " and no field", did_you_mean(request_.y, all)));
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

  // Where a task's trials are done and have no such value, none of them was to have it.
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
  std::set<std::string> fields_;
};

}  // namespace

Selection curve_selection(const CurveRequest& request) {
  Selection made = request.where;
  made.conditions.push_back(questions::one_of("name", {request.y}));
  return made;
}

Definition curve_definition(const CurveRequest& request, const Dataset& data) {
  return CurveMaker(request, data).make();
}

}  // namespace petlab::reports
