#include "cli/answers/history.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <ostream>
#include <set>
#include <stdexcept>

#include "base/nearest_word.h"
#include "base/shown.h"
#include "cli/options/database_option.h"
#include "cli/output/answer_output.h"
#include "orchestrator/recovery/control.h"
#include "questions/sparkline.h"
#include "results/loss_curve.h"
#include "results/scores.h"

namespace petlab::cli {
namespace {

using results::SeriesName;
using results::Value;

struct HistoryArguments {
  std::filesystem::path database;
  std::string trial;
  std::string metric;
  std::string split;
  std::string task;
  AnswerOutput output;
};

// Those of the trial that the user named; one word of each kind that there is more than one of.
std::vector<SeriesName> chosen_series(const std::vector<SeriesName>& all,
                                      const HistoryArguments& arguments) {
  std::vector<SeriesName> left = all;
  const auto choose = [&](const char* kind, const std::string& word,
                          std::string SeriesName::*part) {
    if (word.empty()) return;
    std::set<std::string> known;
    for (const SeriesName& one : left) known.insert(one.*part);
    if (!known.contains(word)) {
      throw std::invalid_argument(base::unknown_word(
          kind, word, std::vector<std::string_view>(known.begin(), known.end())));
    }
    std::erase_if(left, [&](const SeriesName& one) { return one.*part != word; });
  };
  choose("metric", arguments.metric, &SeriesName::name);
  choose("split", arguments.split, &SeriesName::split);
  choose("task", arguments.task, &SeriesName::task);
  return left;
}

// What `progress` events say of the loss, as if it were a metric of a split of its own.
constexpr char kProgress[] = "progress";
constexpr char kLoss[] = "loss";
const SeriesName kLosses{-1, kProgress, "", kLoss};

// Asked for by its split, or as the loss where no metric has that name (yet).
bool wants_progress(const std::vector<SeriesName>& metrics, const HistoryArguments& arguments) {
  if (arguments.split == kProgress) return true;
  if (!arguments.split.empty() || !arguments.task.empty()) return false;
  if (metrics.empty()) return true;
  return arguments.metric == kLoss &&
         std::none_of(metrics.begin(), metrics.end(),
                      [](const SeriesName& one) { return one.name == kLoss; });
}

std::vector<results::HistoryPoint> points_of(const std::vector<results::LossPoint>& losses) {
  std::vector<results::HistoryPoint> points;
  for (const results::LossPoint& point : losses) {
    points.push_back({point.attempt, point.seq, point.step, point.loss});
  }
  return points;
}

int history(const HistoryArguments& arguments, Streams streams) {
  const std::filesystem::path database = database_to_read(arguments.database);
  const results::ScoreReader reader(database);
  const std::string id =
      orchestrator::find_trial(results::Reader(database), database, arguments.trial);
  std::vector<SeriesName> all = reader.series_of(id);
  std::vector<results::LossPoint> losses;
  if (wants_progress(all, arguments)) losses = results::LossReader(database).of_trial(id);
  if (!losses.empty()) all.push_back(kLosses);
  const bool every_metric = !arguments.output.for_people();
  if (all.empty() && !every_metric) {
    throw std::invalid_argument(fmt::format("trial {} has reported no metric yet", id));
  }
  const std::vector<SeriesName> chosen = chosen_series(all, arguments);
  if (arguments.metric.empty() && chosen.size() > 1 && !every_metric) {
    std::set<std::string> names;
    for (const SeriesName& one : chosen) names.insert(one.name);
    if (names.size() > 1) {
      throw std::invalid_argument(
          fmt::format("--metric is not given: trial {} has {}", id, fmt::join(names, ", ")));
    }
  }
  const std::unique_ptr<RowPrinter> printer = arguments.output.printer(streams.out);
  printer->columns({"split", "task", "name", "attempt", "seq", "step", "value"});
  for (const SeriesName& one : chosen) {
    std::vector<std::optional<double>> values;
    for (const results::HistoryPoint& point :
         one.key == kLosses.key ? points_of(losses) : reader.history(id, one)) {
      values.push_back(point.value);
      Value value;
      if (point.value) value = *point.value;
      if (point.value && arguments.output.for_people()) value = short_number(*point.value);
      if (!printer->row(arguments.output.shown(
              {one.split, one.task, one.name, point.attempt, point.seq, point.step, value})) ||
          !streams.out) {
        break;
      }
    }
    if (arguments.output.format == "table") {
      streams.err << fmt::format(
          "{}  {}\n", base::printable(fmt::format("{} {} {}", one.split, one.task, one.name)),
          questions::sparkline(values, 60));
    }
  }
  printer->end();
  return kDone;
}

}  // namespace

std::function<int()> make_history(CLI::App& app, Streams streams) {
  const auto arguments = std::make_shared<HistoryArguments>();
  app.add_option("TRIAL", arguments->trial, "id of a trial, or its beginning")->required();
  app.add_option("--metric", arguments->metric,
                 "name of a metric, such as loss (csv, json, jsonl: default: all)");
  app.add_option("--split", arguments->split,
                 "train, validation, test, or progress: the training loss as reported during "
                 "training (default: all metrics; progress for a loss that is no metric)");
  app.add_option("--task", arguments->task, "of a trial with several (default: all)");
  add_database_option(app, arguments->database);
  add_format_option(app, arguments->output);
  return [arguments, streams] { return history(*arguments, streams); };
}

}  // namespace petlab::cli
