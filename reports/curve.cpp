#include "reports/curve.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>
#include <stdexcept>

#include "reports/selection.h"
#include "reports/words.h"

namespace petlab::reports {
namespace {

const char kStep[] = "step";

// As YAML would read it: a number where it is one.
results::Value value_from(const std::string& text) {
  std::int64_t whole = 0;
  double real = 0;
  const char* const end = text.data() + text.size();
  if (text == "true") return std::int64_t{1};
  if (text == "false") return std::int64_t{0};
  if (text == "~") return std::monostate();
  if (const auto read = std::from_chars(text.data(), end, whole);
      read.ec == std::errc() && read.ptr == end) {
    return whole;
  }
  if (const auto read = std::from_chars(text.data(), end, real);
      read.ec == std::errc() && read.ptr == end) {
    return real;
  }
  return text;
}

std::string underscored(std::string name) {
  std::replace(name.begin(), name.end(), '.', '_');
  return name;
}

// Of `FIELD=VALUE[,VALUE…]`, its field as it is written; std::nullopt of anything else.
std::optional<Condition> condition_from(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) return std::nullopt;
  Condition made{text.substr(0, equals), {}, 1};
  for (std::size_t at = equals + 1; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    made.any_of.push_back(value_from(text.substr(at, end - at)));
    at = end + 1;
  }
  return made;
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
    for (const std::string& condition : request_.where) add_where(made.where, condition);
    std::set<std::string> tasks;
    const auto metrics = data_.known_words.find("name");
    if (metrics != data_.known_words.end() && metrics->second.contains(request_.y)) {
      figure.y.where.conditions.push_back({"name", {request_.y}, 1});
      const std::string split = split_of(x, made.where);
      figure.y.where.conditions.push_back({"split", {split}, 1});
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

  void add_where(Selection& where, const std::string& text) const {
    const auto condition = condition_from(text);
    if (!condition) {
      throw std::invalid_argument(
          fmt::format("--where is '{}', must be FIELD=VALUE or FIELD=VALUE,VALUE", text));
    }
    field(condition->field, "--where");
    where.conditions.push_back(*condition);
    where.conditions.back().field = underscored(condition->field);
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
    }
    if (without.empty() || without == all) return;
    Condition with{"task", {}, 1};
    for (const std::string& task : all) {
      if (!without.contains(task)) with.any_of.emplace_back(task);
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
  Selection made;
  for (const std::string& text : request.where) {
    const auto condition = condition_from(text);
    if (!condition) continue;
    made.conditions.push_back(*condition);
    made.conditions.back().field = underscored(condition->field);
  }
  made.conditions.push_back({"name", {request.y}, 1});
  return made;
}

Definition curve_definition(const CurveRequest& request, const Dataset& data) {
  return CurveMaker(request, data).make();
}

}  // namespace petlab::reports
