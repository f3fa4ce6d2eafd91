// In one file because every step from trials to a printed value works on the same samples.
#include "reports/cell.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <unordered_set>

#include "metrics/metric_table.h"
#include "metrics/published_backbones.h"
#include "reports/derived.h"
#include "reports/samples.h"
#include "reports/selection.h"
#include "sweeps/trial_state.h"

namespace petlab::reports {
namespace {

// The settings of a cell after inheritance from the row, else the column, else the table. The
// content (value, text, average_over) is inherited as one setting.
struct Settings {
  const CellSpec* shown = nullptr;
  std::optional<double> scale;
  std::optional<int> digits;
  std::optional<Better> better;
};

Settings inherited(const CellSpec& row, const CellSpec& column, const CellSpec& table) {
  Settings result;
  for (const CellSpec* spec : {&row, &column, &table}) {
    if (result.shown == nullptr && (spec->value || spec->text || !spec->average_over.empty())) {
      result.shown = spec;
    }
    if (!result.scale) result.scale = spec->scale;
    if (!result.digits) result.digits = spec->digits;
    if (!result.better) result.better = spec->better;
  }
  return result;
}

auto series_of(const Score& score) {
  return std::tie(score.series->split, score.series->task, score.series->name);
}

// Distinct texts in order of first occurrence.
class DifferentTexts {
 public:
  void add(std::string text) {
    if (seen_.insert(text).second) texts_.push_back(std::move(text));
  }
  const std::vector<std::string>& texts() const { return texts_; }

 private:
  std::unordered_set<std::string> seen_;
  std::vector<std::string> texts_;
};

void add_once(std::vector<std::string>& all, std::string one) {
  if (std::find(all.begin(), all.end(), one) == all.end()) all.push_back(std::move(one));
}

// Shortens a list for a message to the first entries and the number of others.
std::vector<std::string> some_of(std::vector<std::string> all) {
  if (all.size() <= 4) return all;
  const std::size_t more = all.size() - 3;
  all.resize(3);
  all.push_back(fmt::format("{} more", more));
  return all;
}

// Drops repeated trials, which several sweeps or variants share.
std::vector<std::size_t> each_once(const Dataset& data, const std::vector<std::size_t>& trials) {
  std::set<std::string> seen;
  std::vector<std::size_t> once;
  for (const std::size_t index : trials) {
    if (seen.insert(data.trials[index].id).second) once.push_back(index);
  }
  return once;
}

void show(Measured& measured, const DifferentTexts& texts) {
  measured.kind = Measured::Kind::text;
  measured.text = fmt::format("{}", fmt::join(texts.texts(), ", "));
  measured.spread = false;
}

}  // namespace

CellMaker::CellMaker(const Definition& definition, const Dataset& data)
    : definition_(definition),
      data_(data),
      scores_(data.trials.size()),
      counting_(data.trials.size()) {
  for (const Score& score : data.scores) scores_[score.trial].push_back(&score);
  for (std::size_t trial = 0; trial < scores_.size(); ++trial) {
    std::vector<const Score*>& scores = scores_[trial];
    std::stable_sort(scores.begin(), scores.end(),
                     [](const Score* a, const Score* b) { return series_of(*a) < series_of(*b); });
    std::vector<const Score*>& counting = counting_[trial];
    for (const Score* score : scores) {
      if (!score->counts) continue;
      // For a series without distinct steps (the training loss), the last score counts.
      if (!counting.empty() && series_of(*counting.back()) == series_of(*score)) {
        counting.back() = score;
      } else {
        counting.push_back(score);
      }
    }
    std::stable_sort(scores.begin(), scores.end(),
                     [](const Score* a, const Score* b) { return a->step < b->step; });
    const auto first =
        std::unique(scores.rbegin(), scores.rend(), [](const Score* later, const Score* score) {
          return later->step == score->step && series_of(*later) == series_of(*score);
        });
    scores.erase(scores.begin(), first.base());
  }
}

CellMaker::Common& CellMaker::common_of(const AxisLine& row, const AxisLine& column) {
  Common& last = last_common_[column.trials];
  if (last.of_row != row.trials) {
    last = {row.trials, each_once(data_, common(*row.trials, *column.trials)), {}, {}, {}};
    last.ids = trial_ids(data_, last.trials);
  }
  return last;
}

const CellMaker::Common::Parts& CellMaker::parts_of(Common& common,
                                                    const std::vector<Selection>& parts) const {
  const auto [known, is_new] = common.parts.try_emplace(&parts);
  Common::Parts& result = known->second;
  if (!is_new) return result;
  std::set<std::int64_t> seeds;
  std::set<std::size_t> any;
  for (const Selection& part : parts) {
    Trials& of_part = result.trials.emplace_back();
    for (const std::size_t index : common.trials) {
      if (!matches(part, data_.trials[index])) continue;
      of_part.push_back(index);
      any.insert(index);
      seeds.insert(data_.trials[index].seed);
    }
  }
  result.ids = trial_ids(data_, {any.begin(), any.end()});
  result.planned_seeds = static_cast<std::int64_t>(seeds.size());
  return result;
}

// The trials with scores at the selected step. If a thousand trials report at different steps, only
// one or two have any at a given step.
CellMaker::Trials CellMaker::with_scores(const Trials& trials, const Selections& selections) {
  const Condition* condition = step_condition(selections);
  if (condition == nullptr || condition->op != Condition::Op::equal) return trials;
  if (trials_at_.empty()) {
    for (std::size_t trial = 0; trial < scores_.size(); ++trial) {
      for (const Score* score : scores_[trial]) {
        Trials& at_step = trials_at_[score->step];
        if (at_step.empty() || at_step.back() != trial) at_step.push_back(trial);
      }
    }
  }
  Trials found;
  for (const std::int64_t step : steps_of(*condition)) {
    const auto at_step = trials_at_.find(step);
    if (at_step == trials_at_.end()) continue;
    found.insert(found.end(), at_step->second.begin(), at_step->second.end());
  }
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return common(found, trials);
}

Cell CellMaker::cell(const AxisLine& row, const AxisLine& column, const CellSpec& defaults,
                     bool column_first) {
  const AxisLine& first = column_first ? column : row;
  const AxisLine& second = column_first ? row : column;
  const Settings settings = inherited(first.line->cells, second.line->cells, defaults);
  Common& common = common_of(row, column);
  const Trials& trials = common.trials;
  const Selections selections = {&definition_.where, &row.scores, &column.scores};
  const int line = settings.shown != nullptr ? settings.shown->line : column.line->line;
  Cell result;
  result.trials.ids = common.ids;
  result.digits = settings.digits;
  if (settings.shown != nullptr && settings.shown->value) {
    const bool examples = *settings.shown->value == kExamples;
    const double scale = settings.scale.value_or(1);
    result.measured = examples ? examples_of(trials, selections, scale, line)
                               : value_of(trials, *settings.shown->value, scale);
    if (examples && !result.digits && !settings.scale) result.digits = 0;
    result.better = settings.better.value_or(Better::none);
  } else if (settings.shown != nullptr && settings.shown->text) {
    result.measured = text_of(trials, *settings.shown->text);
  } else {
    // Without a scale, metrics are printed as in tables: as percentages.
    as_printed_ = !settings.scale;
    if (!result.digits) result.digits = as_printed_ ? 2 : 4;
    series_.clear();
    if (settings.shown != nullptr) {
      fill_average(result, common, selections, settings.shown->average_over, line);
    } else {
      fill_metric(result, trials, selections, line);
    }
    result.better = settings.better.value_or(better_value());
    summarise(result.measured, settings.scale.value_or(1));
  }
  if (result.measured.kind == Cell::Kind::missing && result.measured.reason.empty()) {
    result.measured.reason = why_missing(common);
  }
  if (result.measured.kind == Cell::Kind::missing || result.measured.partial()) {
    result.trials.stopped_early = std::ranges::any_of(trials, [&](std::size_t trial) {
      return data_.trials[trial].state == sweeps::to_string(sweeps::TrialState::stopped);
    });
  }
  return result;
}

std::vector<const Score*> CellMaker::scores_of(std::size_t trial,
                                               const Selections& selections) const {
  std::vector<const Score*> found;
  const auto add_if_selected = [&](const Score* score) {
    if (std::all_of(selections.begin(), selections.end(),
                    [&](const Selection* selection) { return matches(*selection, *score); })) {
      found.push_back(score);
    }
  };
  const Condition* condition = step_condition(selections);
  if (condition == nullptr) {
    for (const Score* score : counting_[trial]) add_if_selected(score);
    return found;
  }
  const std::vector<const Score*>& all = scores_[trial];
  if (condition->op != Condition::Op::equal) {
    for (const Score* score : all) add_if_selected(score);
    return found;
  }
  const auto earlier = [](const Score* score, std::int64_t step) { return score->step < step; };
  for (const std::int64_t step : steps_of(*condition)) {
    for (auto at = std::lower_bound(all.begin(), all.end(), step, earlier);
         at != all.end() && (*at)->step == step; ++at) {
      add_if_selected(*at);
    }
  }
  return found;
}

std::vector<Sample> CellMaker::metric_samples(const Trials& trials, const Selections& selections,
                                              int line, Trials& used) {
  std::vector<Sample> samples;
  for (const std::size_t index : with_scores(trials, selections)) {
    const Trial& trial = data_.trials[index];
    std::vector<const Score*> scores = scores_of(index, selections);
    if (scores.size() > 1) {
      std::sort(scores.begin(), scores.end(), [](const Score* a, const Score* b) {
        return std::tie(a->series->task, a->series->split, a->series->name, a->step) <
               std::tie(b->series->task, b->series->split, b->series->name, b->step);
      });
      std::vector<std::string> found;
      for (const Score* score : scores) {
        found.push_back(fmt::format("{} {} {} at step {}", score->series->split,
                                    score->series->task, score->series->name, score->step));
      }
      problem(line,
              fmt::format("the cell selects {} values of trial {} ({}), must select one: add "
                          "split, task or name to a where",
                          scores.size(), trial.id, fmt::join(some_of(std::move(found)), ", ")));
    }
    if (scores.empty()) continue;
    Sample sample{{trial.id}, trial.seed, scores.front()->value};
    const metrics::MetricRow* metric = metrics::find_metric(scores.front()->series->name);
    if (sample.value && metric != nullptr && as_printed_) *sample.value *= metric->printed_scale;
    series_.emplace(scores.front()->series->task, scores.front()->series->name,
                    scores.front()->series->split);
    samples.push_back(std::move(sample));
    used.push_back(index);
  }
  return samples;
}

void CellMaker::fill_metric(Cell& cell, const Trials& trials, const Selections& selections,
                            int line) {
  Trials used;
  cell.measured.samples = metric_samples(trials, selections, line, used);
  refuse_pooling(line);
  cell.measured.planned = static_cast<std::int64_t>(trials.size());
  describe_trials(cell.trials, used);
}

// Returns none for metrics of unknown or different directions.
Better CellMaker::better_value() const {
  std::set<Better> all;
  for (const auto& [task, name, split] : series_) {
    const std::optional<bool> higher = metrics::higher_is_better(name);
    all.insert(!higher ? Better::none : *higher ? Better::higher : Better::lower);
  }
  return all.size() == 1 ? *all.begin() : Better::none;
}

// Reports cells that pool different kinds of values: the samples of a cell must be its seeds, or
// their mean and deviation are meaningless.
void CellMaker::refuse_pooling(int line) {
  std::set<std::string> tasks;
  std::set<std::string> names;
  std::set<std::string> splits;
  std::vector<std::string> each;
  for (const auto& [task, name, split] : series_) {
    tasks.insert(task);
    names.insert(name);
    splits.insert(split);
    each.push_back(fmt::format("{} {} {}", split, task, name));
  }
  if (each.size() < 2) return;
  std::vector<std::string> several;
  for (const auto& [what, found] :
       {std::pair("task", &tasks), std::pair("name", &names), std::pair("split", &splits)}) {
    if (found->size() > 1) several.emplace_back(what);
  }
  problem(line,
          fmt::format("the cell pools {} kinds of values as if they were seeds ({}): select one "
                      "{} with where, or take their mean with average_over",
                      series_.size(), fmt::join(some_of(std::move(each)), ", "),
                      fmt::join(several, " and ")));
}

// Adds one message per line of the definition; other cells of the line have the same problem.
void CellMaker::problem(int line, const std::string& what) {
  const std::string place = fmt::format("{}:{}: ", definition_.file, line);
  if (std::none_of(problems_.begin(), problems_.end(),
                   [&](const std::string& other) { return other.starts_with(place); })) {
    problems_.push_back(place + what);
  }
}

void CellMaker::fill_average(Cell& cell, Common& common, const Selections& selections,
                             const std::vector<Selection>& parts, int line) {
  const Common::Parts& trials = parts_of(common, parts);
  std::map<std::int64_t, std::vector<Sample>> by_seed;  // one sample per part
  Trials used;
  for (std::size_t at = 0; at < parts.size(); ++at) {
    Selections with_part = selections;
    with_part.push_back(&parts[at]);
    std::map<std::int64_t, std::vector<Sample>> of_seed;
    for (Sample& sample : metric_samples(trials.trials[at], with_part, line, used)) {
      of_seed[sample.seed].push_back(std::move(sample));
    }
    for (auto& [seed, samples] : of_seed) {
      sort_samples(samples);
      Sample mean{{}, seed, 0.0};
      for (const Sample& sample : samples) {
        mean.trial_ids.insert(mean.trial_ids.end(), sample.trial_ids.begin(),
                              sample.trial_ids.end());
        mean.value =
            mean.value && sample.value ? std::optional(*mean.value + *sample.value) : std::nullopt;
      }
      if (mean.value) *mean.value /= static_cast<double>(samples.size());
      by_seed[seed].push_back(std::move(mean));
    }
  }
  for (const auto& [seed, samples] : by_seed) {
    if (samples.size() < parts.size()) continue;
    Sample average{{}, seed, 0.0};
    std::set<std::string> ids;
    for (const Sample& sample : samples) {
      ids.insert(sample.trial_ids.begin(), sample.trial_ids.end());
      average.value = average.value && sample.value ? std::optional(*average.value + *sample.value)
                                                    : std::nullopt;
    }
    if (average.value) *average.value /= static_cast<double>(parts.size());
    average.trial_ids.assign(ids.begin(), ids.end());
    cell.measured.samples.push_back(std::move(average));
  }
  cell.measured.planned = trials.planned_seeds;
  cell.trials.ids = trials.ids;
  std::sort(used.begin(), used.end());
  used.erase(std::unique(used.begin(), used.end()), used.end());
  describe_trials(cell.trials, used);
  if (cell.measured.samples.empty() && !by_seed.empty()) {
    std::size_t most = 0;
    for (const auto& [seed, samples] : by_seed) most = std::max(most, samples.size());
    cell.measured.reason =
        fmt::format("the average is over {} values, no seed has more than {}", parts.size(), most);
  }
}

Measured CellMaker::examples_of(const Trials& trials, const Selections& selections, double scale,
                                int line) {
  Measured result;
  std::size_t finished = 0;
  std::set<std::string> found;
  for (const std::size_t index : trials) {
    const Trial& trial = data_.trials[index];
    finished += has_result(trial.state) ? 1 : 0;
    if (trial.examples == nullptr) continue;
    for (const auto& [task, splits] : *trial.examples) {
      for (const auto& [split, number] : splits) {
        bool selected = true;
        for (const Selection* selection : selections) {
          selected = selected && selects(*selection, task, split);
        }
        if (!selected) continue;
        found.insert(split + " " + task);
        result.samples.push_back({{trial.id}, trial.seed, static_cast<double>(number)});
      }
    }
  }
  if (found.size() > 1) {
    problem(line,
            fmt::format("the cell selects numbers of examples of {} tasks or splits ({}), "
                        "must select one of each: add task or split to a where",
                        found.size(), fmt::join(some_of({found.begin(), found.end()}), ", ")));
  }
  result.planned = static_cast<std::int64_t>(trials.size());
  summarise_values(result, scale);
  if (result.samples.empty() && finished > 0) {
    result.reason = fmt::format("of {} {} with a result none says on how many examples", finished,
                                finished == 1 ? "trial" : "trials");
  }
  return result;
}

Measured CellMaker::value_of(const Trials& trials, const std::string& field, double scale) {
  Measured result;
  DifferentTexts texts;
  for (const std::size_t index : trials) {
    const Trial& trial = data_.trials[index];
    const results::Value value = value_of_trial(trial, field);
    const std::optional<double> number = number_in(value);
    if (number) {
      result.samples.push_back({{trial.id}, trial.seed, *number});
    } else if (std::holds_alternative<std::string>(value)) {
      texts.add(std::get<std::string>(value));
    }
  }
  result.planned = static_cast<std::int64_t>(trials.size());
  if (!texts.texts().empty()) {
    show(result, texts);
    return result;
  }
  summarise_values(result, scale);
  return result;
}

Measured CellMaker::text_of(const Trials& trials, const std::string& text) const {
  Measured result;
  DifferentTexts texts;
  for (const std::size_t index : trials) texts.add(filled(text, data_.trials[index]));
  if (!texts.texts().empty()) show(result, texts);
  return result;
}

results::Value CellMaker::value_of_trial(const Trial& trial, const std::string& field) {
  if (field == "bls_formula") {
    const auto formula = bls_formula(trial);
    return formula ? results::Value(*formula) : results::Value();
  }
  std::optional<double> number;
  if (field == "ft_params_percent") {
    number = ft_params_percent(trial);
  } else if (field == "bls_percent") {
    number =
        bls_percent(trial, [this](const std::string& backbone) { return parameters_of(backbone); });
  } else {
    return field_of(trial, field);
  }
  return number ? results::Value(*number) : results::Value();
}

std::optional<std::int64_t> CellMaker::parameters_of(const std::string& backbone) {
  const auto given = definition_.backbone_parameters.find(backbone);
  if (given != definition_.backbone_parameters.end()) return given->second;
  if (const auto* known = metrics::find_published_backbone(backbone)) return known->parameters;
  add_once(notes_, fmt::format("%BLS needs the parameter count of backbone {}: add it to "
                               "backbone_parameters of the report",
                               backbone));
  return std::nullopt;
}

void CellMaker::describe_trials(CellTrials& trials, const Trials& used) {
  std::set<std::string> numerics;
  std::set<std::shared_ptr<const results::RanCode>> code;
  for (const std::size_t index : used) {
    const Trial& trial = data_.trials[index];
    trials.stale = trials.stale || trial.stale;
    if (!trial.numerics.empty()) numerics.insert(trial.numerics);
    code.insert(trial.code.begin(), trial.code.end());
  }
  for (const auto& [name, values] : results::differing_code(code)) {
    trials.mixed_code.push_back(results::code_difference_text(name, values));
  }
  trials.numerics.assign(numerics.begin(), numerics.end());
  if (last_differing_.first != used) last_differing_ = {used, differing_fields(data_, used)};
  trials.mixed_fields = last_differing_.second;
}

std::string CellMaker::why_missing(Common& common) const {
  const Trials& trials = common.trials;
  if (trials.empty()) common.missing = "the sweep has no such trial";
  if (!common.missing.empty()) return common.missing;
  std::map<std::string, int> states;
  for (const std::size_t index : trials) ++states[data_.trials[index].state];
  std::vector<std::string> counts;
  for (const auto& [state, count] : states) counts.push_back(fmt::format("{} {}", count, state));
  common.missing = fmt::format("no value yet of {} {}: {}", trials.size(),
                               trials.size() == 1 ? "trial" : "trials", fmt::join(counts, ", "));
  return common.missing;
}

}  // namespace petlab::reports
