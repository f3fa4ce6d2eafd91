#include "cli/answers/database_reports.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "base/end_of_file.h"
#include "cli/options/trial_arguments.h"
#include "protocol/trial_directory.h"
#include "reports/builtin.h"
#include "reports/load.h"
#include "reports/losses.h"
#include "results/store.h"
#include "sweeps/catalog.h"

namespace petlab::cli {
namespace {

constexpr std::size_t kLogEndBytes = 4096;  // of which a page shows the last lines

reports::Dataset data_of(const std::filesystem::path& database,
                         const std::vector<std::string>& sweeps, const reports::Selection& where) {
  reports::Dataset data = reports::load_dataset(database, sweeps, where);
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

// A loss over steps that no worker reports as a metric is that of its progress.
bool wants_progress(const reports::CurveRequest& request, const reports::Dataset& data) {
  if (request.split == reports::kProgressSplit) return true;
  return request.split.empty() && request.x == "step" && request.y == reports::kProgressLoss &&
         std::none_of(data.scores.begin(), data.scores.end(), [](const reports::Score& score) {
           return score.name == reports::kProgressLoss;
         });
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
  definition.sweeps = reports::choose_sweeps(definition, sweeps, database);
  reports::Dataset data = data_of(database, definition.sweeps, definition.where);
  if (reports::wants_losses(definition)) reports::add_losses(database, definition.sweeps, data);
  return made_report(definition, data, what);
}

reports::Report curve_on(const reports::CurveRequest& request,
                         const std::vector<std::string>& sweeps,
                         const std::filesystem::path& database, For what) {
  reports::Definition none;
  none.name = kCurveReport;
  const std::vector<std::string> chosen = reports::choose_sweeps(none, sweeps, database);
  reports::Dataset data = data_of(database, chosen, reports::curve_selection(request));
  if (wants_progress(request, data)) reports::add_losses(database, chosen, data);
  reports::Definition definition = reports::curve_definition(request, data);
  definition.sweeps = chosen;
  return made_report(definition, data, what);
}

reports::Report all_reports_on(const std::filesystem::path& database, For what) {
  std::vector<reports::Report> made;
  for (reports::Definition& definition : shipped_definitions()) {
    try {
      reports::choose_sweeps(definition, {}, database);
    } catch (const std::invalid_argument&) {
      continue;
    }
    made.push_back(report_on(std::move(definition), {}, database, what));
  }
  return reports::joined_reports(kAllReports,
                                 "Every table and figure of the paper, and every other report "
                                 "that this database has the sweep of",
                                 std::move(made));
}

void complete_trials(std::vector<reports::TrialRecord>& trials,
                     const std::filesystem::path& database) {
  reports::add_curves(trials, database);
  StoredArguments stored;
  stored.database = database;
  const std::filesystem::path runs = stored.runs_path();
  if (!std::filesystem::is_directory(runs)) return;
  reports::add_logs(trials, [&](const std::string& trial, std::int64_t attempt) {
    return base::end_of_file(protocol::TrialDirectory(runs, trial, attempt).log(), kLogEndBytes);
  });
}

reports::Report own_reports_on(const std::filesystem::path& database) {
  const std::vector<std::string> known = results::Reader(database).sweep_names();
  std::vector<reports::Report> shipped;
  std::vector<std::string> others = known;
  std::vector<std::string> failures;
  // One that a sweep does not fit keeps none of the others from being seen.
  const auto make = [&](std::vector<reports::Report>& into, const auto& report,
                        const std::string& name) {
    try {
      into.push_back(report());
    } catch (const std::invalid_argument& error) {
      failures.push_back(fmt::format("{} cannot be made: {}", name, error.what()));
    }
  };
  for (reports::Definition& definition : shipped_definitions()) {
    if (!has_one_of(known, definition.sweeps)) continue;
    std::erase_if(others,
                  [&](const std::string& sweep) { return has_one_of({sweep}, definition.sweeps); });
    make(
        shipped, [&] { return report_on(definition, {}, database, For::page); }, definition.name);
  }
  std::vector<reports::Report> made;
  for (const std::string& sweep : others) {
    make(
        made,
        [&] {
          reports::Report report =
              report_on(reports::builtin_report("sweep"), {sweep}, database, For::page);
          report.name = sweep;
          return report;
        },
        sweep);
  }
  std::move(shipped.begin(), shipped.end(), std::back_inserter(made));
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
  std::vector<reports::Report> made;
  for (const std::string& name : names) {
    made.push_back(report_on(definition_named(name), {}, database, For::page));
  }
  for (reports::Report& report : made) complete_trials(report.trials, database);
  if (made.size() == 1) return std::move(made.front());
  return reports::joined_reports(database.filename().string(),
                                 fmt::format("{}", fmt::join(names, ", ")), std::move(made));
}

}  // namespace petlab::cli
