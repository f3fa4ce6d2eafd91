#include "cli/running/explain.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <ctime>
#include <memory>
#include <optional>
#include <ostream>

#include "cli/options/stored_plan.h"
#include "cli/options/sweep_arguments.h"
#include "cli/options/trial_arguments.h"
#include "orchestrator/planning/plan.h"
#include "orchestrator/recovery/control.h"
#include "orchestrator/running/progress_line.h"
#include "reports/text.h"
#include "results/decisions.h"

namespace petlab::cli {
namespace {

struct ExplainArguments : StoredArguments {
  std::string trial;
  std::optional<std::int64_t> retries;
};

std::string time_text(double seconds) {
  return fmt::format("{:%Y-%m-%d %H:%M:%S} UTC", fmt::gmtime(static_cast<std::time_t>(seconds)));
}

// What workers say may hold anything.
std::string one_line(const std::string& text) {
  return fmt::format("{}", fmt::join(reports::printable_lines(text), " "));
}

void print_attempt(std::ostream& out, const results::TrialFacts& facts,
                   const results::AttemptFacts& attempt) {
  out << fmt::format("attempt {}: {}", attempt.attempt.number, to_string(attempt.outcome));
  if (attempt.ended_at) {
    out << " after " << orchestrator::duration_text(*attempt.ended_at - attempt.begun.time);
  }
  if (facts.result_attempt == attempt.attempt.number) out << " (the result)";
  out << "\n";
  if (!attempt.reason.empty()) out << "    why: " << one_line(attempt.reason) << "\n";
  if (!attempt.kind.empty()) out << "    kind: " << one_line(attempt.kind) << "\n";
  out << fmt::format("    begun {} on {} ({}) for sweep {}\n", time_text(attempt.begun.time),
                     one_line(attempt.begun.host), one_line(attempt.begun.device),
                     one_line(attempt.begun.sweep));
  if (const auto& resume = attempt.begun.resume) {
    out << fmt::format("    went on from step {} of attempt {}\n", resume->step, resume->attempt);
  }
  if (attempt.checkpoint) {
    out << fmt::format("    last checkpoint: step {}, {}\n", attempt.checkpoint->step,
                       one_line(attempt.checkpoint->path));
  }
  if (attempt.device_memory_mib) {
    out << fmt::format("    held at most {:.0f} MiB of the GPU\n", *attempt.device_memory_mib);
  }
  if (!attempt.note.empty()) out << "    note: " << one_line(attempt.note) << "\n";
  if (!attempt.log_tail.empty()) {
    out << "    last lines of its log:\n";
    for (const std::string& line : reports::printable_lines(attempt.log_tail)) {
      out << "      " << line << "\n";
    }
  }
}

int explain(const ExplainArguments& arguments, Streams streams) {
  const std::filesystem::path database = arguments.database_path();
  const std::filesystem::path runs = arguments.runs_path();
  const results::Reader reader(database);
  const std::string id = orchestrator::find_trial(reader, database, arguments.trial);
  const results::TrialFacts facts = reader.trial_facts(std::vector<std::string>{id}).front();
  streams.out << "trial " << id << "\n";
  std::string members;
  std::string own_sweep;
  for (const std::string& name : reader.sweep_names()) {
    const std::optional<results::SweepRow> sweep = reader.sweep(name);
    if (!sweep) continue;
    for (const auto& member : sweep->members) {
      if (member.trial_id != id) continue;
      // What is done for its own sweep is cached for others: the first is told.
      if (own_sweep.empty()) own_sweep = name;
      members += fmt::format("{}{}{}{}", members.empty() ? "" : ", ", name,
                             member.variant.empty() ? "" : " as ", member.variant);
    }
  }
  if (!members.empty()) streams.out << "sweep: " << one_line(members) << "\n";
  const orchestrator::TrialPlan plan = stored_plan(facts, own_sweep, arguments, arguments.retries);
  streams.out << fmt::format("state: {}\nwhy: {}\n", to_string(plan.state), one_line(plan.why));
  if (facts.retried_after > 0) {
    streams.out << fmt::format("tried again by the user after attempt {}\n", facts.retried_after);
  }
  const results::Care care = results::care_of(reader, id);
  for (const results::Renewal& one : care.renewals) {
    streams.out << fmt::format("results up to attempt {}: {}{}{}\n", one.after_attempt,
                               one.discarded ? "discarded" : "to be made again",
                               one.why.empty() ? "" : ", ", one_line(one.why));
  }
  if (care.hidden) streams.out << "hidden: " << one_line(care.hidden->why) << "\n";
  streams.out << "folder: " << protocol::trial_folder(runs, id).string() << "\n";
  if (const auto row = reader.trial(id))
    streams.out << "configuration: " << one_line(row->config) << "\n";
  for (const results::AttemptFacts& attempt : facts.attempts) {
    print_attempt(streams.out, facts, attempt);
  }
  return kDone;
}

}  // namespace

std::function<int()> make_explain(CLI::App& app, Streams streams) {
  const auto arguments = std::make_shared<ExplainArguments>();
  app.add_option("TRIAL", arguments->trial, "id of a trial, or its beginning")->required();
  add_stored_arguments(app, *arguments);
  add_worker_argument(app, *arguments);
  add_retries_option(app, arguments->retries, "as for petlab run");
  return [arguments, streams] { return explain(*arguments, streams); };
}

}  // namespace petlab::cli
