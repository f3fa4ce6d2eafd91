#include "cli/plan.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>
#include <set>
#include <utility>

#include "cli/sweep_arguments.h"
#include "orchestrator/input_check.h"
#include "orchestrator/run_sweep.h"
#include "reports/text.h"

namespace petlab::cli {
namespace {

struct PlanArguments : SweepArguments {
  bool json = false;
  std::int64_t retries = 2;
};

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

// What tells a trial from the others of its variants: "cola, seed 42".
std::vector<std::string> points(const sweeps::Sweep& sweep) {
  // Twice through the trials: the fields of a million of them at once would be many gigabytes.
  std::map<std::string, std::map<std::string, nlohmann::json>> first;  // by variant, by field
  std::set<std::string> varying;
  for (const sweeps::SweepTrial& trial : sweep.trials) {
    const nlohmann::json fields = nlohmann::json(sweeps::to_json(trial.config)).flatten();
    auto& known = first[joined(trial.variants)];
    for (const auto& [field, value] : fields.items()) {
      if (known.try_emplace(field, value).first->second != value) varying.insert(field);
    }
  }
  std::vector<std::pair<std::string, nlohmann::ordered_json::json_pointer>> shown;
  for (const std::string& field : varying) {
    if (field.starts_with("/task")) continue;
    shown.emplace_back(field.substr(field.rfind('/') + 1),
                       nlohmann::ordered_json::json_pointer(field));
  }
  std::vector<std::string> texts;
  texts.reserve(sweep.trials.size());
  for (const sweeps::SweepTrial& trial : sweep.trials) {
    const nlohmann::ordered_json fields = sweeps::to_json(trial.config);
    std::string text = joined(trial.config.tasks);
    for (const auto& [name, place] : shown) {
      if (!fields.contains(place)) continue;
      const nlohmann::ordered_json& value = fields.at(place);
      // A group of the user's, where another trial has a single value.
      if (value.is_structured()) continue;
      text +=
          fmt::format(", {} {}", name, value.is_string() ? value.get<std::string>() : value.dump());
    }
    texts.push_back(std::move(text));
  }
  return texts;
}

void print_json(std::ostream& out, const sweeps::Sweep& sweep,
                const std::vector<orchestrator::TrialPlan>& plans,
                const SweepArguments& arguments) {
  nlohmann::ordered_json document = {{"sweep", sweep.name},
                                     {"db", arguments.database_path().string()},
                                     {"runs", arguments.runs_path().string()},
                                     {"notes", sweep.notes},
                                     {"trials", nlohmann::ordered_json::array()}};
  // One trial after the other: a document of a million would be many gigabytes.
  std::string text = document.dump(1);
  const std::size_t end = text.rfind(']');
  out << std::string_view(text).substr(0, end);
  for (std::size_t at = 0; at < plans.size(); ++at) {
    const sweeps::SweepTrial& trial = sweep.trials[at];
    const nlohmann::ordered_json shown = {{"id", trial.id.value},
                                          {"variant", joined(trial.variants)},
                                          {"config", sweeps::to_json(trial.config)},
                                          {"state", std::string(to_string(plans[at].state))},
                                          {"why", plans[at].why}};
    out << (at == 0 ? "\n  " : ",\n  ");
    for (const char c : shown.dump(1)) {
      out << c;
      if (c == '\n') out << "  ";
    }
  }
  out << (plans.empty() ? "" : "\n ") << std::string_view(text).substr(end) << "\n";
}

void print_text(std::ostream& out, const sweeps::Sweep& sweep,
                const std::vector<orchestrator::TrialPlan>& plans,
                const SweepArguments& arguments) {
  out << fmt::format("sweep {}: {} {}\ndatabase: {}\nruns: {}\n", sweep.name, plans.size(),
                     plans.size() == 1 ? "trial" : "trials", arguments.database_path().string(),
                     arguments.runs_path().string());
  for (const std::string& note : sweep.notes) out << "note: " << note << "\n";
  std::map<sweeps::TrialState, std::int64_t> counts;
  std::size_t widest = 7;
  std::size_t widest_point = 0;
  const std::vector<std::string> points_of = points(sweep);
  for (std::size_t at = 0; at < plans.size(); ++at) {
    ++counts[plans[at].state];
    widest = std::max(widest, joined(sweep.trials[at].variants).size());
    widest_point = std::max(widest_point, points_of[at].size());
  }
  for (const auto& [state, count] : counts) {
    out << fmt::format("{:>7} {}\n", count, to_string(state));
  }
  for (std::size_t at = 0; at < plans.size(); ++at) {
    const sweeps::SweepTrial& trial = sweep.trials[at];
    out << fmt::format("{}  {:<{}}  {:<{}}  {:<11}  {}\n", trial.id.value, joined(trial.variants),
                       widest, points_of[at], widest_point, to_string(plans[at].state),
                       reports::printable(plans[at].why));
    if (!trial.storage_note.empty()) out << "    " << trial.storage_note << "\n";
  }
}

// Notes what a run would meet: files that cannot be read, and what it leaves alone unless asked.
void look_ahead(sweeps::Sweep& sweep, const std::vector<orchestrator::TrialPlan>& plans,
                const sweeps::Locations& locations, const std::filesystem::path& worker) {
  std::vector<std::size_t> trials;
  std::int64_t failed = 0;
  for (std::size_t at = 0; at < plans.size(); ++at) {
    const bool has_failed = plans[at].state == sweeps::TrialState::failed;
    failed += has_failed ? 1 : 0;
    if (has_failed || orchestrator::is_work(plans[at].state)) trials.push_back(at);
  }
  const orchestrator::InputCheck check =
      orchestrator::check_inputs(sweep, trials, locations, worker_to_check(worker));
  for (const std::string& problem : check.problems) {
    sweep.notes.push_back("cannot be trained on: " + problem);
  }
  if (!check.not_looked.empty()) sweep.notes.push_back(check.not_looked);
  if (failed > 0) {
    sweep.notes.push_back(
        fmt::format("{} failed: once the cause is mended, petlab run --rerun failed tries {} again",
                    failed == 1 ? "1 trial has" : fmt::format("{} trials have", failed),
                    failed == 1 ? "it" : "them"));
  }
}

}  // namespace

std::function<int()> make_plan(CLI::App& app, Streams streams) {
  const auto arguments = std::make_shared<PlanArguments>();
  add_sweep_arguments(app, *arguments);
  app.add_flag("--json", arguments->json, "print one JSON object");
  add_retries_option(app, arguments->retries, "as for petlab run");
  return [arguments, streams] {
    const sweeps::Environment environment = sweeps::process_environment();
    const sweeps::Locations locations = sweeps::find_locations(environment);
    sweeps::Sweep sweep = sweeps::load_sweep(arguments->file, locations);
    const std::filesystem::path worker = worker_if_any(arguments->worker, environment);
    const std::vector<orchestrator::TrialPlan> plans =
        orchestrator::plan_sweep(sweep, locations, arguments->database_path(),
                                 arguments->runs_path(), worker, arguments->retries);
    look_ahead(sweep, plans, locations, worker);
    if (std::filesystem::exists(arguments->database_path())) {
      const results::Reader reader(arguments->database_path());
      const std::string former = orchestrator::former_members_text(
          orchestrator::finished_former_members(reader, sweep), sweep.name);
      if (!former.empty()) sweep.notes.push_back(former);
    }
    (arguments->json ? print_json : print_text)(streams.out, sweep, plans, *arguments);
    return static_cast<int>(kDone);
  };
}

}  // namespace petlab::cli
