#include "cli/status.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>
#include <set>

#include "cli/trial_arguments.h"
#include "orchestrator/control.h"
#include "orchestrator/plan.h"
#include "orchestrator/progress_line.h"
#include "orchestrator/today.h"
#include "orchestrator/wall_clock.h"

namespace petlab::cli {
namespace {

struct Arguments : StoredArguments {
  std::int64_t retries = 2;
  bool json = false;
};

nlohmann::ordered_json attempt_json(const results::AttemptFacts& attempt,
                                    const results::ProgressFacts* progress, double now) {
  nlohmann::ordered_json line = {
      {"trial", attempt.attempt.trial_id}, {"attempt", attempt.attempt.number},
      {"sweep", attempt.begun.sweep},      {"host", attempt.begun.host},
      {"slot", attempt.begun.device},      {"seconds", now - attempt.begun.time}};
  if (progress != nullptr) {
    line["step"] = progress->step;
    line["of"] = progress->of;
    if (progress->loss) line["loss"] = *progress->loss;
  }
  return line;
}

std::string attempt_text(const nlohmann::ordered_json& line) {
  std::string text =
      fmt::format("  {}  attempt {}  {}  since {}", line["trial"].get<std::string>(),
                  line["attempt"].get<std::int64_t>(), line["slot"].get<std::string>(),
                  orchestrator::duration_text(line["seconds"].get<double>()));
  if (line.contains("step")) {
    text += fmt::format("  step {} of {}", line["step"].get<std::int64_t>(),
                        line["of"].get<std::int64_t>());
  }
  if (line.contains("loss")) text += fmt::format("  loss {:.4g}", line["loss"].get<double>());
  return text;
}

int status(const Arguments& arguments, Streams streams) {
  const std::filesystem::path database = arguments.database_path();
  const std::filesystem::path runs = arguments.runs_path();
  const results::Reader reader(database);
  const orchestrator::HostIdentity here = orchestrator::this_host();
  orchestrator::PlanContext context;
  context.runs = runs;
  context.retries = arguments.retries;
  context.liveness = [&](const results::AttemptFacts& attempt) {
    return orchestrator::liveness(attempt.begun, orchestrator::locks_folder(runs), here);
  };
  orchestrator::Today world = today(arguments, runs);
  nlohmann::ordered_json document = {{"db", database.string()},
                                     {"runs", runs.string()},
                                     {"sweeps", nlohmann::ordered_json::array()},
                                     {"running", nlohmann::ordered_json::array()},
                                     {"orchestrators", nlohmann::ordered_json::array()}};
  for (const std::string& name : reader.sweep_names()) {
    const std::optional<results::SweepRow> sweep = reader.sweep(name);
    if (!sweep) continue;
    std::vector<std::string> ids;
    std::set<std::string> seen;
    for (const auto& member : sweep->members) {
      if (seen.insert(member.trial_id).second) ids.push_back(member.trial_id);
    }
    context.sweep = name;
    std::map<sweeps::TrialState, std::int64_t> counts;
    std::map<std::string, std::int64_t> stale;
    for (const results::TrialFacts& facts : reader.trial_facts(ids)) {
      world.put_into(context, facts);
      const orchestrator::TrialPlan plan = orchestrator::plan_trial({}, facts, context);
      ++counts[plan.state];
      if (plan.state == sweeps::TrialState::stale) ++stale[plan.why];
    }
    nlohmann::ordered_json states = nlohmann::ordered_json::object();
    for (const auto& [state, count] : counts) states[std::string(to_string(state))] = count;
    nlohmann::ordered_json reasons = nlohmann::ordered_json::object();
    for (const auto& [why, count] : stale) reasons[why] = count;
    document["sweeps"].push_back(
        {{"sweep", name}, {"trials", ids.size()}, {"states", states}, {"stale", reasons}});
  }
  const std::vector<results::ProgressFacts> progress = reader.progress();
  for (const results::AttemptFacts& attempt : reader.open_attempts()) {
    if (context.liveness(attempt) == orchestrator::Liveness::dead) continue;
    const results::ProgressFacts* its = nullptr;
    for (const auto& one : progress) {
      if (one.attempt == attempt.attempt) its = &one;
    }
    document["running"].push_back(attempt_json(attempt, its, orchestrator::wall_clock_seconds()));
  }
  for (const auto& one : orchestrator::running_orchestrators(runs, here)) {
    document["orchestrators"].push_back(
        {{"sweep", one.sweep}, {"pid", one.pid}, {"host", one.host}, {"db", one.database}});
  }
  if (arguments.json) {
    streams.out << document.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) << "\n";
    return kDone;
  }
  streams.out << "database: " << database.string() << "\nruns: " << runs.string() << "\n";
  for (const auto& sweep : document["sweeps"]) {
    std::string text;
    for (const auto& [state, count] : sweep["states"].items()) {
      text += fmt::format("{} {} {}", text.empty() ? ":" : ",", count.get<std::int64_t>(), state);
    }
    streams.out << fmt::format("sweep {}: {} trials{}\n", sweep["sweep"].get<std::string>(),
                               sweep["trials"].get<std::int64_t>(), text);
    for (const auto& [why, count] : sweep["stale"].items()) {
      streams.out << fmt::format("  {} stale: {}\n", count.get<std::int64_t>(), why);
    }
  }
  for (const auto& one : document["orchestrators"]) {
    streams.out << fmt::format("petlab run of sweep {}: process {} on {}\n",
                               one["sweep"].get<std::string>(), one["pid"].get<std::int64_t>(),
                               one["host"].get<std::string>());
  }
  for (const auto& line : document["running"]) streams.out << attempt_text(line) << "\n";
  return kDone;
}

}  // namespace

std::function<int()> make_status(CLI::App& app, Streams streams) {
  const auto arguments = std::make_shared<Arguments>();
  add_file_argument(app, *arguments);
  add_stored_arguments(app, *arguments);
  add_worker_argument(app, *arguments);
  app.add_option("--retries", arguments->retries, "as for petlab run")
      ->check(CLI::NonNegativeNumber);
  app.add_flag("--json", arguments->json, "print one JSON object");
  return [arguments, streams] { return status(*arguments, streams); };
}

}  // namespace petlab::cli
