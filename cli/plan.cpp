#include "cli/plan.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>
#include <set>

#include "cli/sweep_arguments.h"
#include "orchestrator/run_sweep.h"
#include "reports/text.h"

namespace petlab::cli {
namespace {

struct Arguments : SweepArguments {
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
  std::vector<nlohmann::json> flat;
  std::map<std::string, std::map<std::string, nlohmann::json>> first;  // by variant, by field
  std::set<std::string> varying;
  for (const sweeps::SweepTrial& trial : sweep.trials) {
    const nlohmann::json& fields =
        flat.emplace_back(nlohmann::json(sweeps::to_json(trial.config)).flatten());
    auto& known = first[joined(trial.variants)];
    for (const auto& [field, value] : fields.items()) {
      if (known.try_emplace(field, value).first->second != value) varying.insert(field);
    }
  }
  std::vector<std::string> texts;
  for (std::size_t at = 0; at < flat.size(); ++at) {
    std::string text = joined(sweep.trials[at].config.tasks);
    for (const std::string& field : varying) {
      if (field.starts_with("/task") || !flat[at].contains(field)) continue;
      const nlohmann::json& value = flat[at].at(field);
      text += fmt::format(", {} {}", field.substr(field.rfind('/') + 1),
                          value.is_string() ? value.get<std::string>() : value.dump());
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
  for (std::size_t at = 0; at < plans.size(); ++at) {
    const sweeps::SweepTrial& trial = sweep.trials[at];
    document["trials"].push_back({{"id", trial.id.value},
                                  {"variant", joined(trial.variants)},
                                  {"config", sweeps::to_json(trial.config)},
                                  {"state", std::string(to_string(plans[at].state))},
                                  {"why", plans[at].why}});
  }
  out << document.dump(1) << "\n";
}

void print_text(std::ostream& out, const sweeps::Sweep& sweep,
                const std::vector<orchestrator::TrialPlan>& plans,
                const SweepArguments& arguments) {
  out << fmt::format("sweep {}: {} trials\ndatabase: {}\nruns: {}\n", sweep.name, plans.size(),
                     arguments.database_path().string(), arguments.runs_path().string());
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

}  // namespace

std::function<int()> make_plan(CLI::App& app, Streams streams) {
  const auto arguments = std::make_shared<Arguments>();
  add_sweep_arguments(app, *arguments);
  app.add_flag("--json", arguments->json, "print one JSON object");
  add_retries_option(app, arguments->retries, "as for petlab run");
  return [arguments, streams] {
    const sweeps::Environment environment = sweeps::process_environment();
    const sweeps::Locations locations = sweeps::find_locations(environment);
    const sweeps::Sweep sweep = sweeps::load_sweep(arguments->file, locations);
    const std::vector<orchestrator::TrialPlan> plans = orchestrator::plan_sweep(
        sweep, locations, arguments->database_path(), arguments->runs_path(),
        worker_if_any(arguments->worker, environment), arguments->retries);
    (arguments->json ? print_json : print_text)(streams.out, sweep, plans, *arguments);
    return static_cast<int>(kDone);
  };
}

}  // namespace petlab::cli
