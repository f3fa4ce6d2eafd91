#include "cli/answers/best.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iterator>
#include <memory>
#include <ostream>
#include <stdexcept>

#include "cli/options/trial_arguments.h"
#include "cli/output/answer_output.h"
#include "cli/output/shell_word.h"
#include "protocol/trial_directory.h"
#include "questions/best.h"
#include "questions/conditions.h"
#include "results/store.h"

namespace petlab::cli {
namespace {

using results::Value;

struct BestArguments : StoredArguments {
  std::string where;
  std::string metric;
  std::string split = "validation";
  bool highest = false;
  bool lowest = false;
  std::int64_t top = 1;
  bool all_fields = false;
  AnswerOutput output;
};

struct Found {
  std::filesystem::path file;  // empty: the trial has no artifact
  bool there = false;
  results::ArtifactPlace place;
};

Found artifact_of(const results::ScoreReader& reader, const std::filesystem::path& runs,
                  const std::string& trial_id) {
  Found found;
  const auto place = reader.artifact(trial_id);
  if (!place) return found;
  found.place = *place;
  if (place->path.empty()) return found;
  found.file = protocol::TrialDirectory(runs, trial_id, place->attempt).folder() / place->path;
  std::error_code error;
  found.there = std::filesystem::is_regular_file(found.file, error);
  return found;
}

int best(const BestArguments& arguments, Streams streams) {
  // First, because conditions may name the fields that its catalogs declare.
  const std::filesystem::path database = arguments.database_path();
  const results::ScoreReader reader(database);
  questions::BestRequest request;
  if (!arguments.where.empty()) request.where = questions::parse_where(arguments.where);
  add_sweep_condition(arguments.file, request.where);
  request.metric = arguments.metric;
  request.split = arguments.split;
  request.top = arguments.top;
  if (arguments.highest || arguments.lowest) request.higher_is_better = arguments.highest;
  const std::filesystem::path runs = arguments.runs_path();
  const questions::BestResult result = questions::best(reader, request);
  const bool for_people = arguments.output.for_people();
  const bool every_field = arguments.all_fields || !for_people;
  const auto is_shown = [&](const std::string& field) {
    return every_field || field == "variant" || field == "seed";
  };
  std::vector<std::string> columns = {"task", "trial_id", "metric", request.split};
  if (request.split != "test") columns.emplace_back("test");
  std::copy_if(result.fields.begin(), result.fields.end(), std::back_inserter(columns), is_shown);
  if (every_field) columns.insert(columns.end(), {"selected_step", "train_seconds", "artifact"});
  const auto number = [&](double value) {
    return for_people ? Value(short_number(value)) : Value(value);
  };
  std::vector<std::vector<Value>> rows;
  std::vector<std::string> commands;
  std::vector<std::string> notes;
  for (const questions::BestTrial& trial : result.trials) {
    const Found found = artifact_of(reader, runs, trial.trial_id);
    std::vector<Value>& row = rows.emplace_back();
    row = {trial.task, trial.trial_id, trial.metric, number(trial.value)};
    if (request.split != "test") row.push_back(trial.test ? number(*trial.test) : Value());
    for (std::size_t i = 0; i < result.fields.size(); ++i) {
      if (is_shown(result.fields[i])) row.push_back(trial.fields[i]);
    }
    if (every_field) {
      row.push_back(found.place.selected_step ? Value(*found.place.selected_step) : Value());
      row.push_back(found.place.train_seconds ? Value(*found.place.train_seconds) : Value());
      row.push_back(found.file.empty() ? Value() : Value(found.file.string()));
    }
    if (found.there) {
      // Other workers have formats of their own.
      const bool is_ours = found.file.extension() == ".petl";
      commands.push_back((is_ours ? "petlab-trainer predict --artifact " : "") +
                         shell_word(found.file.string()));
    } else if (!found.file.empty()) {
      notes.push_back(fmt::format(
          "{}: the artifact is missing; if the runs folder has moved, name it with --runs",
          found.file.string()));
    } else {
      notes.push_back(fmt::format("trial {} has no artifact", trial.trial_id));
    }
  }
  arguments.output.print(streams.out, columns, rows, 2);
  if (arguments.output.format == "table" && !commands.empty()) {
    streams.out << "\n";
    for (const std::string& command : commands) streams.out << command << "\n";
  }
  print_notes(streams.err, notes);
  return kDone;
}

}  // namespace

std::function<int()> make_best(CLI::App& app, Streams streams) {
  const auto arguments = std::make_shared<BestArguments>();
  app.add_option("--where", arguments->where, "conditions, as for petlab results");
  app.add_option("--metric", arguments->metric,
                 "metric (default: the one that selects the task's best step)");
  app.add_option("--split", arguments->split,
                 "split used for selection; test scores are shown alongside")
      ->capture_default_str();
  auto* const highest = app.add_flag("--highest", arguments->highest, "higher is better");
  app.add_flag("--lowest", arguments->lowest, "lower is better")->excludes(highest);
  app.add_flag("--all-fields", arguments->all_fields,
               "show every field in which the trials differ, and the artifact");
  app.add_option("--top", arguments->top, "show the best N trials of each task")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  add_file_argument(app, *arguments, streams);
  add_stored_arguments(app, *arguments);
  add_format_option(app, arguments->output);
  return [arguments, streams] { return best(*arguments, streams); };
}

}  // namespace petlab::cli
