#include "cli/running/plan.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <ostream>
#include <set>
#include <span>
#include <utility>

#include "cli/options/database_option.h"
#include "cli/options/json_option.h"
#include "cli/options/sweep_arguments.h"
#include "cli/running/only_trials.h"
#include "cli/running/plan_memory.h"
#include "cli/running/plan_overview.h"
#include "orchestrator/planning/code_changes.h"
#include "orchestrator/planning/early_stop.h"
#include "orchestrator/planning/input_check.h"
#include "orchestrator/running/run_sweep.h"
#include "reports/text.h"
#include "sweeps/fields.h"

namespace petlab::cli {
namespace {

struct PlanArguments : SweepArguments {
  bool json = false;
  bool memory = false;
  std::string device;  // for --memory; empty: the CPU
  std::optional<std::int64_t> retries;
  std::vector<std::string> only;
  std::size_t of = 0;             // number of trials in the sweep, selected or not
  std::vector<std::string> more;  // further sweep files

  sweeps::MemoryDevice memory_device() const {
    return device == "gpu" ? sweeps::MemoryDevice::gpu : sweeps::MemoryDevice::cpu;
  }
};

// Throws std::invalid_argument for options that do not work together.
void check_combination(const PlanArguments& arguments) {
  if (!arguments.device.empty() && !arguments.memory) {
    throw std::invalid_argument("--device requires --memory");
  }
  if (arguments.more.empty()) return;
  for (const auto& [given, what] : {std::pair{!arguments.only.empty(), "--only chooses"},
                                    std::pair{arguments.memory, "--memory estimates"}}) {
    if (!given) continue;
    throw std::invalid_argument(fmt::format("{} trials of one sweep: found {} sweep files", what,
                                            arguments.more.size() + 1));
  }
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

// The fields and `user` keys in which the trials of a variant differ.
struct Differences {
  std::vector<const sweeps::Field*> fields;  // in alphabetical order
  std::set<std::string> user;
};

Differences differences(const sweeps::Sweep& sweep) {
  struct Seen {
    std::vector<nlohmann::json> fields;  // the first value of each, by index; null: none yet
    std::map<std::string, nlohmann::json> user;
    std::string last_user = "{}";
  };
  const std::span<const sweeps::Field> fields = sweeps::fields();
  std::map<std::string, Seen> variants;
  std::vector<bool> differs(fields.size());
  Differences found;
  // Compares field by field: converting trials to JSON would dominate the time of a plan.
  for (const sweeps::SweepTrial& trial : sweep.trials) {
    Seen& seen = variants[joined(trial.variants)];
    seen.fields.resize(fields.size());
    for (std::size_t at = 0; at < fields.size(); ++at) {
      if (differs[at] || !sweeps::is_active(fields[at], trial.config)) continue;
      nlohmann::json value = fields[at].get(trial.config);
      if (seen.fields[at].is_null()) {
        seen.fields[at] = std::move(value);
      } else if (seen.fields[at] != value) {
        differs[at] = true;
        found.fields.push_back(&fields[at]);
      }
    }
    if (trial.config.user == seen.last_user) continue;
    seen.last_user = trial.config.user;
    const nlohmann::json user = nlohmann::json::parse(trial.config.user);
    for (const auto& [key, value] : user.items()) {
      if (seen.user.try_emplace(key, value).first->second != value) found.user.insert(key);
    }
  }
  std::sort(found.fields.begin(), found.fields.end(),
            [](const auto* a, const auto* b) { return a->name < b->name; });
  return found;
}

// What distinguishes each trial from the others of its variants: "cola, seed 42".
std::vector<std::string> points(const sweeps::Sweep& sweep) {
  const Differences differ = differences(sweep);
  std::vector<std::string> texts;
  texts.reserve(sweep.trials.size());
  for (const sweeps::SweepTrial& trial : sweep.trials) {
    std::string text = joined(trial.config.tasks);
    const auto add = [&](std::string_view name, const nlohmann::json& value) {
      text +=
          fmt::format(", {} {}", name, value.is_string() ? value.get<std::string>() : value.dump());
    };
    for (const sweeps::Field* field : differ.fields) {
      if (!sweeps::is_active(*field, trial.config)) continue;
      add(field->name.substr(field->name.rfind('.') + 1), field->get(trial.config));
    }
    if (!differ.user.empty()) {
      const nlohmann::json user = nlohmann::json::parse(trial.config.user);
      for (const std::string& key : differ.user) {
        if (user.contains(key)) add(key, user.at(key));
      }
    }
    texts.push_back(std::move(text));
  }
  return texts;
}

void print_json(std::ostream& out, const sweeps::Sweep& sweep,
                const std::vector<orchestrator::TrialPlan>& plans, const PlanArguments& arguments) {
  nlohmann::ordered_json document = {{"sweep", sweep.name},
                                     {"db", arguments.database_path().string()},
                                     {"runs", arguments.runs_path().string()},
                                     {"notes", sweep.notes}};
  if (!sweep.overrides.empty()) document["set"] = sweep.overrides;
  if (!arguments.only.empty()) {
    document["only"] = arguments.only;
    document["of"] = arguments.of;
  }
  document["trials"] = nlohmann::ordered_json::array();
  // Printed trial by trial: one document of a million trials would take many gigabytes.
  std::string text = document.dump(1);
  const std::size_t end = text.rfind(']');
  out << std::string_view(text).substr(0, end);
  const sweeps::MemoryDevice device = arguments.memory_device();
  for (std::size_t at = 0; at < plans.size(); ++at) {
    const sweeps::SweepTrial& trial = sweep.trials[at];
    nlohmann::ordered_json shown = {{"id", trial.id.value},
                                    {"variant", joined(trial.variants)},
                                    {"config", sweeps::to_json(trial.config)},
                                    {"state", std::string(to_string(plans[at].state))},
                                    {"why", plans[at].why}};
    if (plans[at].code_changes) shown["code_changes"] = *plans[at].code_changes;
    if (arguments.memory) {
      shown["memory"] = memory_json(sweeps::estimate_memory(sweep, trial.config, device), device);
    }
    out << (at == 0 ? "\n  " : ",\n  ");
    for (const char c : shown.dump(1)) {
      out << c;
      if (c == '\n') out << "  ";
    }
  }
  out << (plans.empty() ? "" : "\n ") << std::string_view(text).substr(end) << "\n";
}

void print_text(std::ostream& out, const sweeps::Sweep& sweep,
                const std::vector<orchestrator::TrialPlan>& plans, const PlanArguments& arguments) {
  const std::string size =
      arguments.only.empty()
          ? fmt::format("{} {}", plans.size(), plans.size() == 1 ? "trial" : "trials")
          : fmt::format("{} of {} trials: those with {}", plans.size(), arguments.of,
                        fmt::join(arguments.only, " and "));
  out << fmt::format("sweep {}: {}\ndatabase: {}\nruns: {}\n", sweep.name, size,
                     arguments.database_path().string(), arguments.runs_path().string());
  for (const std::string& one : sweep.overrides) {
    out << "set: " << reports::printable(one) << "\n";
  }
  for (const std::string& note : sweep.notes) out << "note: " << reports::printable(note) << "\n";
  std::map<sweeps::TrialState, std::int64_t> counts;
  for (const orchestrator::TrialPlan& plan : plans) ++counts[plan.state];
  for (const auto& [state, count] : counts) {
    out << fmt::format("{:>7} {}\n", count, to_string(state));
  }
  if (arguments.memory) {
    const sweeps::MemoryDevice device = arguments.memory_device();
    print_memory(out, sweep, estimate_all(sweep, device), device);
    return;
  }
  std::size_t widest = 7;
  std::size_t widest_point = 0;
  const std::vector<std::string> points_of = points(sweep);
  for (std::size_t at = 0; at < plans.size(); ++at) {
    widest = std::max(widest, joined(sweep.trials[at].variants).size());
    widest_point = std::max(widest_point, points_of[at].size());
  }
  for (std::size_t at = 0; at < plans.size(); ++at) {
    const sweeps::SweepTrial& trial = sweep.trials[at];
    std::string why = reports::printable(plans[at].why);
    if (plans[at].code_changes && !plans[at].code_changes->empty()) {
      why += "; ran other code: " + orchestrator::listed_changes(*plans[at].code_changes);
    }
    out << fmt::format("{}  {:<{}}  {:<{}}  {:<11}  {}\n", trial.id.value, joined(trial.variants),
                       widest, points_of[at], widest_point, to_string(plans[at].state), why);
    if (!trial.storage_note.empty()) out << "    " << trial.storage_note << "\n";
  }
}

// Adds notes for problems that a run would meet: unreadable files, and trials it skips by default.
void look_ahead(sweeps::Sweep& sweep, const std::vector<orchestrator::TrialPlan>& plans,
                const sweeps::Locations& locations, const orchestrator::WorkerCommand& worker) {
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
    sweep.notes.push_back("input problem: " + problem);
  }
  if (!check.not_looked.empty()) sweep.notes.push_back(check.not_looked);
  orchestrator::ChangedCode changed;
  for (std::size_t at = 0; at < plans.size(); ++at) {
    if (plans[at].code_changes) changed[sweep.trials[at].id.value] = *plans[at].code_changes;
  }
  if (const std::string text = orchestrator::changed_code_text(changed); !text.empty()) {
    sweep.notes.push_back(text + " (petlab show TRIAL --code); reports mark cells that mix them");
  }
  if (const std::optional<double> saved = orchestrator::most_saved(sweep)) {
    sweep.notes.push_back(fmt::format("stop_early ({}) saves at most {:.0f} % of the steps",
                                      to_string(sweep.early_stop->kind), 100 * *saved));
  }
  if (failed > 0) {
    sweep.notes.push_back(
        fmt::format("{} failed: fix the cause, then petlab run --rerun failed retries {}",
                    failed == 1 ? "1 trial has" : fmt::format("{} trials have", failed),
                    failed == 1 ? "it" : "them"));
  }
}

}  // namespace

std::function<int()> make_plan(CLI::App& app, Streams streams) {
  const auto arguments = std::make_shared<PlanArguments>();
  add_sweep_arguments(app, *arguments, streams);
  app.add_option("MORE", arguments->more, "more sweep files: count trials per file and in total");
  add_json_option(app, arguments->json, "print one JSON object");
  add_retries_option(app, arguments->retries, "as for petlab run");
  add_only_option(app, arguments->only);
  app.add_flag("--memory", arguments->memory, "estimate the peak memory of each trial");
  app.add_option("--device", arguments->device, "the worker's device for --memory (default: cpu)")
      ->check(CLI::IsMember({"cpu", "gpu"}));
  return [arguments, streams] {
    check_combination(*arguments);
    const sweeps::Environment environment = sweeps::process_environment();
    const sweeps::Locations locations = sweeps::find_locations(environment);
    const orchestrator::WorkerCommand worker = worker_if_any(arguments->worker, environment);
    if (!arguments->more.empty()) {
      std::vector<std::string> files{arguments->file};
      files.insert(files.end(), arguments->more.begin(), arguments->more.end());
      print_overview(
          streams.out,
          plan_overview(files, *arguments, locations, environment, worker, arguments->retries),
          arguments->json);
      return static_cast<int>(kDone);
    }
    const sweeps::Sweep whole = arguments->load(locations, environment);
    if (arguments->memory && !whole.catalog.empty()) {
      throw std::invalid_argument(fmt::format(
          "--memory estimates the memory of petlab-trainer: found worker {}", whole.catalog));
    }
    const auto chosen = only_trials(whole, arguments->only);
    sweeps::Sweep sweep = chosen ? part_of(whole, *chosen) : whole;
    arguments->of = whole.trials.size();
    const std::vector<orchestrator::TrialPlan> plans =
        orchestrator::plan_sweep(sweep, locations, environment, arguments->database_path(),
                                 arguments->runs_path(), worker, arguments->retries);
    look_ahead(sweep, plans, locations, worker);
    if (std::filesystem::exists(arguments->database_path())) {
      if (!std::filesystem::is_directory(arguments->runs_path())) {
        sweep.notes.push_back(runs_folder_gone());
      }
      const results::Reader reader(arguments->database_path());
      const std::string former = orchestrator::former_members_text(
          orchestrator::finished_former_members(reader, whole), sweep.name);
      if (!former.empty()) sweep.notes.push_back(former);
    }
    (arguments->json ? print_json : print_text)(streams.out, sweep, plans, *arguments);
    return static_cast<int>(kDone);
  };
}

}  // namespace petlab::cli
