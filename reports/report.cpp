#include "reports/report.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/file_problems.h"
#include "reports/cell.h"
#include "reports/names.h"
#include "reports/selection.h"

namespace petlab::reports {
namespace {

std::vector<SweepProgress> progress_of(const Dataset& data,
                                       const std::vector<std::string>& sweeps) {
  std::vector<SweepProgress> all;
  std::map<std::string, std::size_t> places;
  for (const std::string& sweep : sweeps) {
    places.emplace(sweep, all.size());
    all.push_back({sweep, 0, {}});
  }
  std::set<std::pair<std::string, std::string>> seen;
  std::map<std::string, std::map<std::string, std::int64_t>> states;
  for (const Trial& trial : data.trials) {
    if (!seen.emplace(trial.sweep, trial.id).second) continue;
    const auto [place, is_new] = places.emplace(trial.sweep, all.size());
    if (is_new) all.push_back({trial.sweep, 0, {}});
    ++all[place->second].trials;
    ++states[trial.sweep][trial.state];
  }
  for (SweepProgress& progress : all) {
    const auto& counts = states[progress.sweep];
    progress.states.assign(counts.begin(), counts.end());
  }
  return all;
}

Section make_section(const TableSpec& spec, const Ingredients& from, CellMaker& maker) {
  return make_table(spec, from, maker);
}
Section make_section(const FigureSpec& spec, const Ingredients& from, CellMaker& maker) {
  return make_figure(spec, from, maker);
}
Section make_section(const RanksSpec& spec, const Ingredients& from, CellMaker& maker) {
  return make_ranks(spec, from, maker);
}

}  // namespace

Report make_report(const Definition& definition, const Dataset& data, const Published& published) {
  CheckedNames names = check_names(definition, data, published);
  if (!names.problems.empty()) throw base::FileProblemsError(std::move(names.problems));
  Report report;
  report.name = definition.name;
  report.about = definition.about;
  report.progress = progress_of(data, definition.sweeps);
  std::vector<std::size_t> trials;
  for (std::size_t index = 0; index < data.trials.size(); ++index) {
    if (matches(definition.where, data.trials[index])) trials.push_back(index);
  }
  CellMaker maker(definition, data);
  const Ingredients from{definition, data, trials, published};
  for (const SectionSpec& section : definition.sections) {
    report.sections.push_back(
        std::visit([&](const auto& spec) { return make_section(spec, from, maker); }, section));
  }
  if (!maker.problems().empty()) throw base::FileProblemsError(maker.problems());
  report.notes = definition.notes;
  report.notes.insert(report.notes.end(), maker.notes().begin(), maker.notes().end());
  report.notes.insert(report.notes.end(), names.notes.begin(), names.notes.end());
  report.builds = data.builds;
  return report;
}

Report joined_reports(const std::string& name, const std::string& about,
                      std::vector<Report> reports) {
  Report all;
  all.name = name;
  all.about = about;
  std::set<std::string> sweeps;
  std::set<std::string> builds;
  std::map<std::string, std::size_t> trials;  // by id: index into all.trials
  for (Report& report : reports) {
    for (SweepProgress& progress : report.progress) {
      if (sweeps.insert(progress.sweep).second) all.progress.push_back(std::move(progress));
    }
    for (Section& section : report.sections) {
      std::visit(
          [&](auto& part) {
            part.key = report.name + (part.key.empty() ? "" : "-" + part.key);
            part.title = report.name + ": " + (part.title.empty() ? report.about : part.title);
          },
          section);
      all.sections.push_back(std::move(section));
    }
    for (const std::string& note : report.notes) all.notes.push_back(report.name + ": " + note);
    for (std::string& build : report.builds) {
      if (builds.insert(build).second) all.builds.push_back(std::move(build));
    }
    for (TrialRecord& trial : report.trials) {
      const auto [place, is_new] = trials.emplace(trial.id, all.trials.size());
      if (is_new) {
        all.trials.push_back(std::move(trial));
        continue;
      }
      std::vector<std::string>& members = all.trials[place->second].members;
      for (std::string& member : trial.members) {
        if (std::find(members.begin(), members.end(), member) == members.end()) {
          members.push_back(std::move(member));
        }
      }
    }
  }
  return all;
}

}  // namespace petlab::reports
