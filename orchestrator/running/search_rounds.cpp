#include "orchestrator/running/search_rounds.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <thread>
#include <unordered_map>
#include <utility>

#include "base/child.h"
#include "base/shallow_json.h"
#include "base/shown.h"
#include "base/tools_python.h"
#include "base/trimmed.h"
#include "metrics/selection.h"
#include "orchestrator/host/error.h"
#include "orchestrator/host/lock_file.h"
#include "orchestrator/recovery/evidence.h"
#include "protocol/trial_directory.h"
#include "results/scores.h"
#include "sweeps/search.h"
#include "sweeps/sweep_reader.h"

namespace petlab::orchestrator {
namespace {

using nlohmann::json;
using sweeps::SearchedField;
using sweeps::SearchPoint;
using sweeps::Study;

// The exit code of suggest.py if Optuna is not installed.
constexpr int kNotInstalled = 69;

// Seeds of NumPy have 32 bits. The seed of a round depends on what is known before it, so that it
// is the same however often a run was killed.
std::uint32_t seed_of_round(const Study& study) {
  const double draw = sweeps::search_draw(study.seed, "round of search by tpe",
                                          static_cast<std::int64_t>(study.points.size()));
  return static_cast<std::uint32_t>(std::ldexp(draw, 32));
}

json number_of(const SearchedField& field, const std::string& text) {
  if (!field.range || field.is_whole) return std::stoll(text);
  return std::stod(text);
}

json values_of(const Study& study, const SearchPoint& point) {
  json values = json::object();
  for (std::size_t i = 0; i < point.size(); ++i) {
    values[study.fields[i].name] = number_of(study.fields[i], point[i]);
  }
  return values;
}

json fields_of(const Study& study) {
  json fields = json::array();
  for (const SearchedField& field : study.fields) {
    json one = {{"name", field.name}};
    if (field.range) {
      one["low"] = number_of(field, field.range->low);
      one["high"] = number_of(field, field.range->high);
      one["log"] = field.range->is_log;
      one["whole"] = field.is_whole;
    } else {
      one["choices"] = field.choices;
    }
    fields.push_back(std::move(one));
  }
  return fields;
}

// The point as it would be written in the file. Throws json::exception and std::invalid_argument
// for what is no point of the study.
SearchPoint point_from(const json& values, const Study& study) {
  SearchPoint point;
  for (const SearchedField& field : study.fields) {
    const double value = values.at(field.name).get<double>();
    if (field.range) {
      point.push_back(sweeps::nearest_in_range(*field.range, field.is_whole, value));
    } else if (value >= 0 && value < static_cast<double>(field.choices)) {
      point.push_back(fmt::format("{:.0f}", std::floor(value)));
    } else {
      throw std::invalid_argument(fmt::format("{} has no choice {}", field.name, value));
    }
  }
  return point;
}

// The selected validation score of a trial, higher is better; absent if it is unknown or undefined.
std::optional<double> score_of(const results::ScoredTrial& trial, const sweeps::Sweep& sweep) {
  std::vector<metrics::SelectedMetric> values;
  const std::span<const results::Score> scores = trial.scores();
  for (const std::string& task : results::listed(trial.tasks)) {
    const auto declared = sweep.tasks.find(task);
    if (declared == sweep.tasks.end()) return std::nullopt;
    const std::vector<std::string> names = sweep.study->metric.empty()
                                               ? declared->second.select_by
                                               : std::vector<std::string>{sweep.study->metric};
    for (const std::string& name : names) {
      const auto found = std::ranges::find_if(scores, [&](const results::Score& score) {
        return score.series->task == task && score.series->name == name;
      });
      if (found == scores.end()) return std::nullopt;
      values.push_back({found->series->name, found->value});
    }
  }
  return metrics::selection_score(values);
}

LockFile lock_points(const std::filesystem::path& runs) {
  const std::filesystem::path file = locks_folder(runs) / "points.lock";
  // A holder only reads and writes a small file.
  for (int tries = 0; tries < 10'000; ++tries) {
    if (auto lock = LockFile::try_lock(file)) return std::move(*lock);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  throw Error(fmt::format("{}: another petlab run holds this lock", file.string()));
}

std::string last_line(const std::string& text) {
  const std::string_view trimmed = base::trimmed(text);
  const std::size_t line = trimmed.rfind('\n');
  return base::printable_message(
      std::string(line == std::string_view::npos ? trimmed : trimmed.substr(line + 1)));
}

}  // namespace

SearchRounds::SearchRounds(EventLoop& loop, const results::Store& store, sweeps::Sweep& sweep,
                           const sweeps::Locations& locations, std::filesystem::path runs,
                           RunObserver& observer)
    : loop_(loop),
      store_(store),
      sweep_(sweep),
      locations_(locations),
      runs_(std::move(runs)),
      observer_(observer) {}

bool SearchRounds::next(RunResult& result) {
  const bool first = std::exchange(first_, false);
  if (!sweep_.study || sweep_.study->is_complete()) return first;
  result.points_missing = true;
  if (!first && (result.interrupted || result.status.over() < result.status.total)) return false;
  // Whoever lacks Optuna should learn so before hours of training.
  const std::string problem = first ? ask({{"told", json::array()}}, 0) : extend();
  result.interrupted = interrupted_;
  if (!problem.empty() && !interrupted_) {
    result.problem = fmt::format("search by tpe: {}; run the same command to continue", problem);
  }
  return result.problem.empty() && !interrupted_;
}

// Sets answer_. Returns the problem, or an empty text.
std::string SearchRounds::ask(json request, std::size_t points) {
  const Study& study = *sweep_.study;
  const base::ToolsPython python = base::tools_python(locations_.home);
  if (std::string problem = python.problem(); !problem.empty()) return problem;
  answer_ = {};
  answer_.told = static_cast<std::int64_t>(request["told"].size());
  answer_.seed = seed_of_round(study);
  request["fields"] = fields_of(study);
  request["startup"] = study.startup;
  request["seed"] = answer_.seed;
  request["points"] = points;
  base::ChildCommand command;
  command.program = python.program.string();
  command.arguments = python.arguments("-c", {std::string(search_scripts().front().content)});
  command.time_limit = limit;
  command.input = request.dump();
  std::optional<base::ChildAnswer> ended;
  {
    base::Children children(loop_.io());
    children.run(std::move(command), [&](base::ChildAnswer answer) { ended = std::move(answer); });
    waiting_ = true;
    while (!ended && !interrupted_) loop_.wait(std::nullopt);
    waiting_ = false;
  }
  if (!ended) return "interrupted";
  if (ended->exit_code == kNotInstalled) {
    return fmt::format("Optuna is missing; {}", python.how_to_add("optuna"));
  }
  if (!ended->problem.empty()) {
    const std::string line = last_line(ended->errors.empty() ? ended->output : ended->errors);
    return fmt::format("Optuna in {} {}{}", python.program.string(), ended->problem,
                       line.empty() ? "" : ": " + line);
  }
  try {
    const json answer = base::parse_shallow_json(ended->output, "the answer");
    answer_.version = answer.at("optuna").get<std::string>();
    for (const json& values : answer.at("points")) {
      answer_.points.push_back(point_from(values, study));
    }
    if (answer_.points.size() == points) return {};
    return fmt::format("Optuna in {} suggested {} points, must be {}", python.program.string(),
                       answer_.points.size(), points);
  } catch (const json::exception& error) {
    return fmt::format("Optuna in {} printed no points: {}", python.program.string(),
                       base::json_problem(error));
  } catch (const std::runtime_error& error) {
    return fmt::format("Optuna in {} printed no points: {}", python.program.string(), error.what());
  } catch (const std::invalid_argument& error) {
    return fmt::format("Optuna in {} printed no points: {}", python.program.string(), error.what());
  }
}

// Adds a round to the sweep. Returns the problem, or an empty text.
std::string SearchRounds::extend() {
  const Study before = *sweep_.study;
  const auto known = static_cast<std::int64_t>(before.points.size());
  const std::int64_t missing = std::min(before.per_round, before.trials - known);
  std::string problem = ask({{"told", told()}}, static_cast<std::size_t>(missing));
  if (!problem.empty()) return problem;
  const std::filesystem::path folder = protocol::sweeps_folder(runs_);
  {
    const LockFile lock = lock_points(runs_);
    // Another run of the sweep may have recorded this round.
    const auto recorded = static_cast<std::int64_t>(recorded_points(folder, before).size());
    if (recorded + std::min(before.startup, before.trials) <= known) {
      sweeps::record_points(folder, before, sweep_.name, answer_);
    }
  }
  sweeps::Sweep next =
      sweeps::read_sweep_text(sweep_.text, sweep_.file, locations_, sweeps::kMaxTrials,
                              sweep_.overrides, sweep_.catalog, folder);
  if (!next.study || next.study->id != before.id) {
    return "the files of the sweep's tasks or backbones changed";
  }
  sweep_ = std::move(next);
  const auto now_known = static_cast<std::int64_t>(sweep_.study->points.size());
  observer_.note(
      fmt::format("search by tpe: {} of {} points are known, {} more from the results of {}",
                  now_known, before.trials, now_known - known, known));
  return {};
}

// The results of all known points, as create_trial() of Optuna takes them.
json SearchRounds::told() const {
  struct Known {
    bool stopped = false;
    std::optional<double> score;
  };
  std::unordered_map<std::string, Known> trials;
  results::ScoreQuestion question;
  question.where = {{results::word_named("sweep"), results::Condition::Op::equal, {sweep_.name}}};
  question.splits = {"validation"};
  question.members = results::ScoreQuestion::Members::joined;
  question.configurations = false;
  results::ScoreReader(store_.read()).each(question, [&](const results::ScoredTrial& trial) {
    Known& known = trials[trial.trial_id];
    known.stopped = trial.stopped_early;
    if (trial.has_result) known.score = score_of(trial, sweep_);
  });
  const Study& study = *sweep_.study;
  json told = json::array();
  for (std::size_t at = 0; at < study.points.size(); ++at) {
    json point = {{"values", values_of(study, study.points[at])}, {"state", "COMPLETE"}};
    double sum = 0;
    for (const std::size_t trial : study.trials_of[at]) {
      const Known& known = trials[sweep_.trials[trial].id.value];
      if (known.score) sum += *known.score;
      if (!known.score && point["state"] != "PRUNED") {
        point["state"] = known.stopped ? "PRUNED" : "FAIL";
      }
    }
    if (study.trials_of[at].empty()) point["state"] = "FAIL";
    if (point["state"] == "COMPLETE") {
      point["value"] = sum / static_cast<double>(study.trials_of[at].size());
    }
    told.push_back(std::move(point));
  }
  return told;
}

}  // namespace petlab::orchestrator
