#include "reports/figure.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <span>

#include "metrics/metric_table.h"
#include "questions/conditions.h"
#include "reports/axis.h"
#include "reports/cell.h"
#include "reports/derived.h"
#include "reports/selection.h"
#include "reports/thinning.h"

namespace petlab::reports {
namespace {

bool is_storage(const std::string& field) {
  return is_derived(field) || field == "bls_bits" || field == "stored_bits";
}

// The default name of an axis, after its content.
std::string usual_name(const FigureAxis& axis) {
  if (!axis.name.empty()) return axis.name;
  if (axis.cells.value) return *axis.cells.value == "bls_percent" ? "%BLS" : *axis.cells.value;
  std::string names;
  for (const Condition& condition : axis.where.conditions) {
    if (condition.word.name != "name" && condition.word.name != "task") continue;
    for (const results::Value& value : condition.values) {
      names += (names.empty() ? "" : " ") + to_text(value);
    }
  }
  return names.empty() ? "average" : names;
}

void note_once(std::vector<std::string>& notes, std::string note) {
  if (std::find(notes.begin(), notes.end(), note) == notes.end()) notes.push_back(std::move(note));
}

// Computes the points of one figure.
class FigureMaker {
 public:
  FigureMaker(const FigureSpec& spec, const Ingredients& from, CellMaker& maker)
      : spec_(spec), from_(from), maker_(maker), field_(*spec.x.cells.value) {
    y_line_.cells = spec.y.cells;
    y_line_.line = spec.y.line;
    y_.line = &y_line_;
    std::vector<std::size_t> fitting;
    for (const std::size_t index : from.trials) {
      if (matches(spec.y.where, from.data.trials[index])) fitting.push_back(index);
    }
    y_.trials = std::make_shared<const std::vector<std::size_t>>(std::move(fitting));
    for (const Condition& condition : spec.y.where.conditions) {
      if (is_score_field(condition.word.name) || condition.word.name == "task") {
        y_.scores.conditions.push_back(condition);
      }
    }
  }

  Figure make() {
    figure_.key = spec_.key;
    figure_.title = spec_.title;
    figure_.x = {usual_name(spec_.x), spec_.x.log};
    figure_.y = {usual_name(spec_.y), spec_.y.log};
    figure_.errors = spec_.errors;
    figure_.digits = spec_.y.cells.digits;
    for (const SeriesSpec& series : spec_.series) {
      const std::size_t before = figure_.series.size();
      for (const AxisLine& line : expanded(series.line)) {
        figure_.series.push_back({line.key, line.name, points_of(line), {}});
      }
      // Published points are shown even if there are no trials.
      if (figure_.series.size() == before && !series.published.empty()) {
        figure_.series.push_back({series.line.key, series.line.name, {}, {}});
      }
      for (const PublishedPoints& points : series.published) {
        if (figure_.series.size() > before) add_published(points, figure_.series[before]);
      }
    }
    for (const SeriesSpec& line : spec_.horizontal) {
      for (const AxisLine& one : expanded(line.line)) add_horizontal(line, one);
    }
    return std::move(figure_);
  }

 private:
  std::vector<AxisLine> expanded(const Line& line) const {
    Selection where = from_.definition.where;
    where.conditions.insert(where.conditions.end(), spec_.y.where.conditions.begin(),
                            spec_.y.where.conditions.end());
    return expand(std::span(&line, 1), from_.data, from_.trials, where);
  }

  std::optional<double> x_of(const Trial& trial) {
    const auto value = number_in(maker_.value_of_trial(trial, field_));
    if (!value) return std::nullopt;
    return *value * spec_.x.cells.scale.value_or(1);
  }

  // The series' trials grouped by x, or by configuration if x is measured per trial.
  std::map<double, std::vector<std::size_t>> trials_by_x(const AxisLine& line) {
    std::map<double, std::vector<std::size_t>> by_x;
    const std::vector<std::size_t> all = common(*line.trials, *y_.trials);
    if (is_storage(field_) || from_.data.configuration.contains(field_)) {
      std::size_t without = 0;
      for (const std::size_t index : all) {
        if (const auto x = x_of(from_.data.trials[index])) {
          by_x[*x].push_back(index);
        } else {
          ++without;
        }
      }
      if (without > 0) {
        note_once(figure_.notes, fmt::format("{} of {} trials of {} have no {}", without,
                                             all.size(), line.name, field_));
      }
      return by_x;
    }
    const std::vector<std::string> fields = differing_fields(from_.data, all);
    std::map<std::vector<results::Value>, std::vector<std::size_t>> by_configuration;
    for (const std::size_t index : all) {
      std::vector<results::Value> values;
      for (const std::string& field : fields) {
        values.push_back(field_of(from_.data.trials[index], field));
      }
      by_configuration[values].push_back(index);
    }
    for (const auto& [values, trials] : by_configuration) {
      double sum = 0;
      std::int64_t n = 0;
      for (const std::size_t index : trials) {
        if (const auto x = x_of(from_.data.trials[index])) {
          sum += *x;
          ++n;
        }
      }
      if (n == 0) continue;  // no measurements yet
      std::vector<std::size_t>& at_x = by_x[sum / static_cast<double>(n)];
      at_x.insert(at_x.end(), trials.begin(), trials.end());
      std::sort(at_x.begin(), at_x.end());
    }
    return by_x;
  }

  bool has_place(double x, double y) {
    if ((spec_.x.log && x <= 0) || (spec_.y.log && y <= 0)) {
      note_once(figure_.notes, "points at 0 or less have no place on an axis with logarithms");
      return false;
    }
    return true;
  }

  void add_point(std::vector<FigurePoint>& points, double x, Cell cell) {
    if (cell.digits) figure_.digits = cell.digits;
    if (cell.measured.kind == Measured::Kind::undefined) {
      note_once(figure_.notes, "points of which a value is undefined are not drawn");
    }
    if (!cell.measured.is_number() || !has_place(x, *cell.measured.mean)) return;
    points.push_back({x, std::move(cell)});
  }

  std::vector<FigurePoint> points_of(const AxisLine& line) {
    std::vector<FigurePoint> points;
    if (field_ == "step") {
      Condition at_step = questions::one_of("step", {}, spec_.x.line);
      for (const std::int64_t step : steps_of(line)) {
        AxisLine at = line;
        at_step.values = {step};
        at.scores.conditions.push_back(at_step);
        add_point(points, static_cast<double>(step), maker_.cell(at, y_, {}));
      }
      return points;
    }
    for (auto& [x, trials] : trials_by_x(line)) {
      AxisLine at = line;
      at.trials = std::make_shared<const std::vector<std::size_t>>(std::move(trials));
      add_point(points, x, maker_.cell(at, y_, {}));
    }
    return points;
  }

  std::set<std::int64_t> steps_of(const AxisLine& line) {
    if (steps_by_trial_.empty()) {
      steps_by_trial_.resize(from_.data.trials.size());
      std::vector<Selection> any = spec_.y.cells.average_over;
      if (any.empty()) any.emplace_back();
      for (const Score& score : from_.data.scores) {
        if (matches(from_.definition.where, score) && matches(y_.scores, score) &&
            std::any_of(any.begin(), any.end(),
                        [&](const Selection& part) { return matches(part, score); })) {
          steps_by_trial_[score.trial].insert(score.step);
        }
      }
    }
    std::set<std::int64_t> steps;
    for (const std::size_t index : common(*line.trials, *y_.trials)) {
      steps.insert(steps_by_trial_[index].begin(), steps_by_trial_[index].end());
    }
    return steps;
  }

  void cite(const PublishedPoints& points) {
    const PublishedTable* table = from_.published.table(points.table);
    note_once(figure_.published_titles,
              from_.published.source() + ", " + points.table + ": " + table->title);
  }

  void add_published(const PublishedPoints& points, FigureSeries& series) {
    const PublishedTable* table = from_.published.table(points.table);
    const auto* column = std::get_if<std::string>(&points.x);
    for (const std::string& row : table->rows) {
      if (points.row.empty() ? !row.starts_with(points.rows) : row != points.row) continue;
      const PublishedValue* y = from_.published.find(points.table, row, points.y);
      const PublishedValue* x =
          column == nullptr ? nullptr : from_.published.find(points.table, row, *column);
      const double* y_number = y == nullptr ? nullptr : std::get_if<double>(&y->value);
      const double* x_number =
          x != nullptr ? std::get_if<double>(&x->value) : std::get_if<double>(&points.x);
      if (y_number == nullptr || x_number == nullptr || !has_place(*x_number, *y_number)) continue;
      std::string erratum = y->erratum;
      if (x != nullptr && !x->erratum.empty()) {
        erratum += (erratum.empty() ? "" : "; ") + x->erratum;
      }
      series.published.push_back({*x_number, *y_number, row, erratum});
      cite(points);
    }
    std::stable_sort(series.published.begin(), series.published.end(),
                     [](const PublishedPoint& a, const PublishedPoint& b) { return a.x < b.x; });
  }

  void add_horizontal(const SeriesSpec& line, const AxisLine& one) {
    HorizontalLine horizontal{one.key, one.name, maker_.cell(one, y_, {})};
    for (const PublishedPoints& points : line.published) {
      const PublishedValue* value = from_.published.find(points.table, points.row, points.y);
      const double* number = value == nullptr ? nullptr : std::get_if<double>(&value->value);
      if (number == nullptr) continue;
      horizontal.cell.published = {*number, std::nullopt, value->erratum};
      cite(points);
    }
    figure_.horizontal.push_back(std::move(horizontal));
  }

  const FigureSpec& spec_;
  const Ingredients& from_;
  CellMaker& maker_;
  const std::string field_;
  Line y_line_;
  AxisLine y_;
  std::vector<std::set<std::int64_t>> steps_by_trial_;  // only filled if x is the step
  Figure figure_;
};

}  // namespace

std::optional<ErrorBar> error_bar(const Measured& measured, Spread spread) {
  if (spread == Spread::none || !measured.mean || !measured.spread) return std::nullopt;
  if (spread == Spread::interval) {
    if (!measured.ci_low || !measured.ci_high) return std::nullopt;
    return ErrorBar{*measured.ci_low, *measured.ci_high};
  }
  const auto& half = spread == Spread::deviation ? measured.deviation : measured.standard_error;
  if (!half) return std::nullopt;
  return ErrorBar{*measured.mean - *half, *measured.mean + *half};
}

std::size_t measured_points(const Figure& figure) {
  std::size_t points = 0;
  for (const FigureSeries& series : figure.series) points += series.points.size();
  return points;
}

Figure thinned(const Figure& figure, std::size_t most) {
  Figure result = figure;
  if (measured_points(figure) <= most) return result;
  const std::size_t of_each = std::max<std::size_t>(4, most / figure.series.size());
  for (FigureSeries& series : result.series) {
    std::vector<double> y;
    for (const FigurePoint& point : series.points) y.push_back(*point.cell.measured.mean);
    std::vector<FigurePoint> kept;
    for (const std::size_t at : thinned(y, of_each)) kept.push_back(std::move(series.points[at]));
    series.points = std::move(kept);
  }
  return result;
}

Figure make_figure(const FigureSpec& spec, const Ingredients& from, CellMaker& maker) {
  return FigureMaker(spec, from, maker).make();
}

}  // namespace petlab::reports
