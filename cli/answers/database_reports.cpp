#include "cli/answers/database_reports.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <variant>

#include "base/end_of_file.h"
#include "cli/options/trial_arguments.h"
#include "protocol/trial_directory.h"
#include "questions/conditions.h"
#include "reports/builtin.h"
#include "reports/load.h"
#include "reports/losses.h"
#include "reports/wanted.h"
#include "results/scores.h"
#include "results/store.h"
#include "sweeps/catalog.h"

namespace petlab::cli {
namespace {

constexpr std::size_t kLogEndBytes = 4096;  // of which a page shows the last lines

std::filesystem::path runs_of(const std::filesystem::path& database) {
  StoredArguments stored;
  stored.database = database;
  return stored.runs_path();
}

reports::Dataset data_of(const results::Reader& reader, const std::filesystem::path& database,
                         const std::vector<std::string>& sweeps, const reports::Wanted& wanted) {
  reports::Dataset data = reports::load_dataset(reader, sweeps, wanted, living_now(database));
  for (const sweeps::TaskDeclaration& task : sweeps::tasks()) {
    data.known_words["task"].insert(task.name);
  }
  for (const sweeps::ModuleRow& module : sweeps::modules()) {
    data.known_words["module_kind"].emplace(module.kind);
  }
  return data;
}

reports::Report made_report(const reports::Definition& definition, const reports::Dataset& data,
                            For what) {
  reports::Report report = reports::make_report(definition, data, reports::published_numbers());
  if (what == For::page) report.trials = reports::trial_records(report, data);
  return report;
}

// A report, or the mistakes that keep it from being made.
using Made = std::variant<reports::Report, std::exception_ptr>;

// The definitions' reports, in their order. Those that are about the same sweeps are made from data
// that are read once.
std::vector<Made> reports_on(const results::Reader& reader, const std::filesystem::path& database,
                             const std::vector<reports::Definition>& definitions, For what) {
  // Losses are added to the data of those that want them alone: they would stand in a cell of
  // others that select no split.
  std::map<std::pair<std::vector<std::string>, bool>, std::vector<std::size_t>> together;
  for (std::size_t i = 0; i < definitions.size(); ++i) {
    together[{definitions[i].sweeps, reports::wants_losses(definitions[i])}].push_back(i);
  }
  std::vector<Made> made(definitions.size());
  for (const auto& [of, places] : together) {
    const auto& [sweeps, losses] = of;
    std::vector<reports::Definition> those;
    for (const std::size_t place : places) those.push_back(definitions[place]);
    reports::Dataset data = data_of(reader, database, sweeps, reports::wanted_by(those));
    if (losses) reports::add_losses(database, sweeps, data);
    for (const std::size_t place : places) {
      try {
        made[place] = made_report(definitions[place], data, what);
      } catch (const std::invalid_argument&) {
        made[place] = std::current_exception();
      }
    }
  }
  return made;
}

reports::Report report_or_throw(Made made) {
  if (const auto* error = std::get_if<std::exception_ptr>(&made)) std::rethrow_exception(*error);
  return std::get<reports::Report>(std::move(made));
}

// A loss over steps that no worker reports as a metric is that of its progress.
bool wants_progress(const reports::CurveRequest& request, const reports::Dataset& data) {
  if (request.split == reports::kProgressSplit) return true;
  return request.split.empty() && request.x == "step" && request.y == reports::kProgressLoss &&
         std::none_of(data.scores.begin(), data.scores.end(), [](const reports::Score& score) {
           return score.series->name == reports::kProgressLoss;
         });
}

// Throws where the conditions of --where select nothing of these data.
void check_selected(const std::vector<results::Condition>& where, const results::Reader& reader,
                    const std::vector<std::string>& sweeps, const reports::Dataset& data) {
  const results::ScoreReader scores(reader);
  const bool is_of_scores =
      std::any_of(where.begin(), where.end(), [](const results::Condition& condition) {
        return condition.word.scope == results::WordScope::score;
      });
  results::ScoreQuestion question;
  question.where = where;
  if (!data.trials.empty() && (!is_of_scores || !scores.series_for(question).empty())) return;
  questions::explain_nothing(scores, where);
  throw std::invalid_argument(
      fmt::format("--where selects no trial of sweep {}", fmt::join(sweeps, ", ")));
}

// The figure's definition, and the data that it was made for.
std::pair<reports::Definition, reports::Dataset> asked_curve(
    const reports::CurveRequest& request, const std::vector<std::string>& sweeps,
    const std::filesystem::path& database) {
  reports::Definition none;
  none.name = kCurveReport;
  const results::Reader reader(database);
  const std::vector<std::string> chosen =
      reports::choose_sweeps(none, sweeps, database, reader.sweep_names());
  reports::Dataset data = data_of(reader, database, chosen, reports::wanted_by(request));
  if (!request.where.empty()) check_selected(request.where, reader, chosen, data);
  if (wants_progress(request, data)) reports::add_losses(database, chosen, data);
  reports::Definition definition = reports::curve_definition(request, data);
  definition.sweeps = chosen;
  return {std::move(definition), std::move(data)};
}

// table2 before table10, figures behind tables.
std::pair<int, int> place_in_paper(const std::string& name) {
  for (const auto& [kind, place] : {std::pair("table", 0), std::pair("figure", 1)}) {
    const std::string_view word = kind;
    if (name.starts_with(word) && name.size() > word.size()) {
      return {place, std::atoi(name.c_str() + word.size())};
    }
  }
  return {2, 0};
}

// The shipped definitions that name their sweeps, in the paper's order. One without a sweep of its
// own is of any.
std::vector<reports::Definition> shipped_definitions() {
  std::vector<std::string> names = reports::builtin_reports();
  std::stable_sort(names.begin(), names.end(), [](const std::string& a, const std::string& b) {
    return place_in_paper(a) < place_in_paper(b);
  });
  std::vector<reports::Definition> definitions;
  for (const std::string& name : names) {
    reports::Definition definition = reports::builtin_report(name);
    if (!definition.sweeps.empty()) definitions.push_back(std::move(definition));
  }
  return definitions;
}

bool has_one_of(const std::vector<std::string>& known, const std::vector<std::string>& wanted) {
  return std::any_of(wanted.begin(), wanted.end(), [&](const std::string& sweep) {
    return std::find(known.begin(), known.end(), sweep) != known.end();
  });
}

}  // namespace

results::IsAlive living_now(const std::filesystem::path& database) {
  return living_in(runs_of(database));
}

reports::Definition definition_named(const std::string& report) {
  const bool is_file = report.find('/') != std::string::npos || report.ends_with(".yaml") ||
                       report.ends_with(".yml");
  if (!is_file) return reports::builtin_report(report);
  std::ifstream in(report, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  if (!in) {
    throw std::invalid_argument(report +
                                ": cannot read it, must be a report's definition "
                                "(petlab report --list shows those that need no file)");
  }
  return reports::parse_definition(text.str(), report);
}

reports::Report report_on(reports::Definition definition, const std::vector<std::string>& sweeps,
                          const std::filesystem::path& database, For what) {
  const results::Reader reader(database);
  definition.sweeps = reports::choose_sweeps(definition, sweeps, database, reader.sweep_names());
  return report_or_throw(reports_on(reader, database, {definition}, what).front());
}

reports::Report curve_on(const reports::CurveRequest& request,
                         const std::vector<std::string>& sweeps,
                         const std::filesystem::path& database, For what) {
  const auto [definition, data] = asked_curve(request, sweeps, database);
  return made_report(definition, data, what);
}

reports::Definition curve_question(const reports::CurveRequest& request,
                                   const std::vector<std::string>& sweeps,
                                   const std::filesystem::path& database) {
  return asked_curve(request, sweeps, database).first;
}

reports::Report all_reports_on(const std::filesystem::path& database, For what) {
  const results::Reader reader(database);
  const std::vector<std::string> known = reader.sweep_names();
  std::vector<reports::Definition> chosen;
  for (reports::Definition& definition : shipped_definitions()) {
    try {
      definition.sweeps = reports::choose_sweeps(definition, {}, database, known);
    } catch (const std::invalid_argument&) {
      continue;
    }
    chosen.push_back(std::move(definition));
  }
  std::vector<reports::Report> made;
  for (Made& one : reports_on(reader, database, chosen, what)) {
    made.push_back(report_or_throw(std::move(one)));
  }
  return reports::joined_reports(kAllReports,
                                 "Every table and figure of the paper, and every other report "
                                 "that this database has the sweep of",
                                 std::move(made));
}

void complete_trials(std::vector<reports::TrialRecord>& trials,
                     const std::filesystem::path& database) {
  reports::add_curves(trials, database);
  const std::filesystem::path runs = runs_of(database);
  if (!std::filesystem::is_directory(runs)) return;
  reports::add_logs(trials, [&](const std::string& trial, std::int64_t attempt) {
    return base::end_of_file(protocol::TrialDirectory(runs, trial, attempt).log(), kLogEndBytes);
  });
}

reports::Report own_reports_on(const std::filesystem::path& database) {
  const results::Reader reader(database);
  const std::vector<std::string> known = reader.sweep_names();
  std::vector<reports::Definition> shipped;
  std::vector<std::string> others = known;
  for (reports::Definition& definition : shipped_definitions()) {
    if (!has_one_of(known, definition.sweeps)) continue;
    std::erase_if(others,
                  [&](const std::string& sweep) { return has_one_of({sweep}, definition.sweeps); });
    shipped.push_back(std::move(definition));
  }
  std::vector<reports::Definition> definitions;
  for (const std::string& sweep : others) {
    reports::Definition& definition = definitions.emplace_back(reports::builtin_report("sweep"));
    definition.sweeps = {sweep};
  }
  std::vector<std::string> failures;
  const auto failed = [&](const reports::Definition& definition, const std::exception& error) {
    failures.push_back(fmt::format("{} cannot be made: {}", definition.name, error.what()));
  };
  for (reports::Definition& definition : shipped) {
    try {
      definition.sweeps = reports::choose_sweeps(definition, {}, database, known);
      definitions.push_back(std::move(definition));
    } catch (const std::invalid_argument& error) {
      failed(definition, error);
    }
  }
  std::vector<Made> reports = reports_on(reader, database, definitions, For::page);
  std::vector<reports::Report> made;
  for (std::size_t i = 0; i < reports.size(); ++i) {
    if (i < others.size()) definitions[i].name = others[i];
    // One that a sweep does not fit keeps none of the others from being seen.
    try {
      reports::Report report = report_or_throw(std::move(reports[i]));
      report.name = definitions[i].name;
      made.push_back(std::move(report));
    } catch (const std::invalid_argument& error) {
      failed(definitions[i], error);
    }
  }
  reports::Report whole = reports::joined_reports(
      database.filename().string(),
      known.empty() ? "No sweep has begun in this database" : "The sweeps of this database",
      std::move(made));
  std::move(failures.begin(), failures.end(), std::back_inserter(whole.notes));
  complete_trials(whole.trials, database);
  return whole;
}

reports::Report named_reports_on(const std::vector<std::string>& names,
                                 const std::filesystem::path& database) {
  const results::Reader reader(database);
  std::vector<reports::Definition> definitions;
  for (const std::string& name : names) {
    reports::Definition& definition = definitions.emplace_back(definition_named(name));
    definition.sweeps = reports::choose_sweeps(definition, {}, database, reader.sweep_names());
  }
  std::vector<reports::Report> made;
  for (Made& one : reports_on(reader, database, definitions, For::page)) {
    made.push_back(report_or_throw(std::move(one)));
  }
  reports::Report whole =
      made.size() == 1
          ? std::move(made.front())
          : reports::joined_reports(database.filename().string(),
                                    fmt::format("{}", fmt::join(names, ", ")), std::move(made));
  complete_trials(whole.trials, database);
  return whole;
}

}  // namespace petlab::cli
