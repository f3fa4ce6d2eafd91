#include "cli/answers/show.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>

#include "base/shallow_json.h"
#include "cli/answers/attempt_details.h"
#include "cli/answers/show_code.h"
#include "cli/options/json_option.h"
#include "cli/options/stored_plan.h"
#include "cli/options/sweep_arguments.h"
#include "cli/options/trial_arguments.h"
#include "cli/output/answer_output.h"
#include "cli/output/flat_configuration.h"
#include "cli/output/moment_text.h"
#include "cli/output/remark_lines.h"
#include "cli/output/shell_word.h"
#include "orchestrator/recovery/control.h"
#include "orchestrator/running/progress_line.h"
#include "protocol/trial_directory.h"
#include "questions/sparkline.h"
#include "reports/text.h"
#include "results/decisions.h"
#include "results/examples.h"
#include "results/remarks.h"
#include "results/scores.h"

namespace petlab::cli {
namespace {

using nlohmann::ordered_json;

struct ShowArguments : StoredArguments {
  std::string trial;
  std::optional<std::int64_t> retries;
  bool json = false;
  bool code = false;
  bool diff = false;
};

struct Curve {
  results::SeriesName series;
  std::vector<results::HistoryPoint> points;
};

// All that is told, read before anything is printed.
struct Shown {
  std::string id;
  std::filesystem::path folder;
  results::TrialRow trial;
  results::TrialFacts facts;
  orchestrator::TrialPlan plan;
  results::ResultDecisions care;
  results::Remarks remarks;
  std::map<std::string, std::vector<std::string>> sweep_tags;  // by sweep, of those that have some
  std::map<std::int64_t, results::Provenance> provenance;      // by attempt
  std::map<std::int64_t, results::Examples> examples;          // by attempt
  std::vector<std::string> members;                            // "sweep", "sweep as variant"
  std::vector<Curve> curves;
  std::optional<results::ArtifactPlace> artifact;
  std::filesystem::path artifact_file;  // empty: none
};

bool is_member(const results::Reader& reader, const std::string& sweep, const std::string& id) {
  const results::SweepRow row = reader.sweep(sweep).value_or(results::SweepRow());
  return std::any_of(row.members.begin(), row.members.end(),
                     [&](const auto& member) { return member.trial_id == id; });
}

Shown read_trial(const ShowArguments& arguments) {
  const std::filesystem::path database = arguments.database_path();
  const results::Reader reader(database);
  Shown shown;
  shown.id = orchestrator::find_trial(reader, database, arguments.trial);
  const std::filesystem::path runs = arguments.runs_path();
  shown.folder = protocol::trial_folder(runs, shown.id);
  shown.trial = reader.trial(shown.id).value();
  shown.facts = reader.trial_facts(std::vector<std::string>{shown.id}).front();
  shown.care = results::result_decisions(reader, shown.id);
  for (const results::AttemptFacts& attempt : shown.facts.attempts) {
    shown.provenance[attempt.attempt.number] = reader.provenance(attempt.attempt);
    shown.examples[attempt.attempt.number] = results::examples_of(reader, attempt.attempt);
  }
  shown.remarks = results::remarks_of(reader, {shown.id, ""});
  std::string own_sweep;
  for (const std::string& sweep : reader.sweep_names()) {
    if (!is_member(reader, sweep, shown.id)) continue;
    // What is done for its own sweep is cached for others.
    if (own_sweep.empty()) own_sweep = sweep;
    std::vector<std::string> tags = results::remarks_of(reader, {"", sweep}).tags;
    if (!tags.empty()) shown.sweep_tags[sweep] = std::move(tags);
    const std::vector<std::string> variants = reader.variants(sweep, shown.id);
    if (variants.empty()) shown.members.push_back(sweep);
    for (const std::string& variant : variants) shown.members.push_back(sweep + " as " + variant);
  }
  shown.plan = stored_plan(shown.facts, own_sweep, arguments, arguments.retries);
  const results::ScoreReader scores(database);
  for (const results::SeriesName& one : scores.series_of(shown.id)) {
    shown.curves.push_back({one, scores.history(shown.id, one)});
  }
  shown.artifact = scores.artifact(shown.id);
  if (shown.artifact && !shown.artifact->path.empty()) {
    shown.artifact_file =
        protocol::TrialDirectory(runs, shown.id, shown.artifact->attempt).folder() /
        shown.artifact->path;
  }
  return shown;
}

// The attempt whose provenance is shown: the one with the result, else the last.
const results::AttemptFacts* told_attempt(const results::TrialFacts& facts) {
  for (const results::AttemptFacts& attempt : facts.attempts) {
    if (attempt.attempt.number == facts.result_attempt) return &attempt;
  }
  return facts.attempts.empty() ? nullptr : &facts.attempts.back();
}

ordered_json provenance(const Shown& shown, const results::AttemptFacts& attempt) {
  ordered_json all = ordered_json::object();
  const auto add = [&](const char* name, const std::string& text) {
    if (!text.empty()) all[name] = text;
  };
  add("petlab", attempt.begun.commit);
  add("worker", attempt.worker);
  add("worker_version", attempt.worker_version);
  const nlohmann::json numerics = base::shallow_json_or_none(attempt.numerics);
  if (numerics.is_object()) all["numerics"] = numerics;
  add("launcher", attempt.begun.launcher);
  add("host", attempt.begun.host);
  add("device", attempt.begun.device);
  if (attempt.launch) add("job", attempt.launch->job);
  add("backbone_digest", attempt.backbone_digest);
  for (const auto& [task, digest] : attempt.data_digests) all["data_digests"][task] = digest;
  for (const auto& [task, splits] : shown.examples.at(attempt.attempt.number)) {
    for (const char* split : {"train", "validation", "test"}) {
      if (splits.contains(split)) all["examples"][task][split] = splits.at(split);
    }
  }
  const results::Provenance& provenance = shown.provenance.at(attempt.attempt.number);
  for (const auto& [name, text] :
       {std::pair("petlab_said", provenance.petlab), std::pair("worker_said", provenance.worker)}) {
    if (const auto object = base::shallow_json_or_none(text); object.is_object()) {
      all[name] = object;
    }
  }
  return all;
}

ordered_json shown_json(const Shown& shown) {
  ordered_json all = {{"trial_id", shown.id},
                      {"state", to_string(shown.plan.state)},
                      {"why", shown.plan.why},
                      {"sweeps", shown.members},
                      {"folder", shown.folder.string()},
                      {"configuration", base::shallow_json_or_none(shown.trial.config)}};
  all["tags"] = shown.remarks.tags;
  all["sweep_tags"] = ordered_json::object();
  for (const auto& [sweep, tags] : shown.sweep_tags) all["sweep_tags"][sweep] = tags;
  all["remarks"] = ordered_json::array();
  for (const protocol::Remark& one : shown.remarks.all) {
    all["remarks"].push_back({{"time", one.time}, {to_string(one.what), one.text}});
  }
  all["hidden"] = nullptr;
  if (shown.care.hidden) {
    all["hidden"] = {{"why", shown.care.hidden->why}, {"time", shown.care.hidden->time}};
  }
  all["renewals"] = ordered_json::array();
  for (const results::Renewal& one : shown.care.renewals) {
    all["renewals"].push_back({{"after_attempt", one.after_attempt},
                               {"discarded", one.discarded},
                               {"why", one.why},
                               {"time", one.time}});
  }
  all["attempts"] = ordered_json::array();
  for (const results::AttemptFacts& attempt : shown.facts.attempts) {
    ordered_json one = {{"attempt", attempt.attempt.number},
                        {"outcome", to_string(attempt.outcome)},
                        {"begun_at", attempt.begun.time},
                        {"ended_at", nullptr},
                        {"reason", attempt.reason}};
    if (attempt.ended_at) one["ended_at"] = *attempt.ended_at;
    one["provenance"] = provenance(shown, attempt);
    all["attempts"].push_back(std::move(one));
  }
  all["metrics"] = ordered_json::array();
  for (const Curve& curve : shown.curves) {
    ordered_json points = ordered_json::array();
    for (const results::HistoryPoint& point : curve.points) {
      points.push_back({point.step, point.value ? ordered_json(*point.value) : ordered_json()});
    }
    all["metrics"].push_back({{"split", curve.series.split},
                              {"task", curve.series.task},
                              {"name", curve.series.name},
                              {"points", std::move(points)}});
  }
  all["artifact"] = nullptr;
  if (!shown.artifact_file.empty()) {
    all["artifact"] = {{"file", shown.artifact_file.string()},
                       {"attempt", shown.artifact->attempt}};
  }
  all["selected_step"] = nullptr;
  all["train_seconds"] = nullptr;
  if (shown.artifact && shown.artifact->selected_step) {
    all["selected_step"] = *shown.artifact->selected_step;
  }
  if (shown.artifact && shown.artifact->train_seconds) {
    all["train_seconds"] = *shown.artifact->train_seconds;
  }
  return all;
}

// Lines `  name  value`, aligned; what users and workers wrote is made printable.
void print_pairs(std::ostream& out, const char* title,
                 const std::vector<std::pair<std::string, std::string>>& pairs) {
  if (pairs.empty()) return;
  int width = 0;
  for (const auto& [name, value] : pairs) {
    width = std::max(width, reports::display_width(reports::printable(name)));
  }
  out << title << "\n";
  for (const auto& [name, value] : pairs) {
    const std::string shown = reports::printable(name);
    const auto space = static_cast<std::size_t>(width - reports::display_width(shown));
    out << "  " << shown << std::string(space, ' ') << "  " << reports::printable(value) << "\n";
  }
}

std::string plain(const ordered_json& value) {
  return value.is_string() ? value.get<std::string>()
                           : value.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

// "500 train, 100 validation"
std::string numbers_by_split(const ordered_json& splits) {
  std::vector<std::string> parts;
  for (const auto& [split, number] : splits.items()) {
    parts.push_back(number.dump() + " " + split);
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string curve_text(const Curve& curve) {
  std::vector<std::optional<double>> values;
  for (const results::HistoryPoint& point : curve.points) values.push_back(point.value);
  const auto shown = std::find_if(curve.points.begin(), curve.points.end(),
                                  [](const auto& point) { return point.counts; });
  const std::string number = shown->value ? short_number(*shown->value) : "undefined";
  if (curve.points.size() == 1) return fmt::format("{} at step {}", number, shown->step);
  return fmt::format("{}  {} at step {}, the {} of {}", questions::sparkline(values), number,
                     shown->step, shown + 1 == curve.points.end() ? "last" : "selected one",
                     curve.points.size());
}

void print_shown(const Shown& shown, std::ostream& out) {
  std::vector<std::pair<std::string, std::string>> pairs = {
      {"state", fmt::format("{}: {}", to_string(shown.plan.state), shown.plan.why)}};
  for (const std::string& member : shown.members) pairs.emplace_back("sweep", member);
  pairs.emplace_back("folder", shown.folder.string());
  if (!shown.remarks.tags.empty()) {
    pairs.emplace_back("tags", fmt::format("{}", fmt::join(shown.remarks.tags, ", ")));
  }
  for (const auto& [sweep, tags] : shown.sweep_tags) {
    pairs.emplace_back("tags of " + sweep, fmt::format("{}", fmt::join(tags, ", ")));
  }
  if (shown.care.hidden) pairs.emplace_back("hidden", shown.care.hidden->why);
  for (const results::Renewal& one : shown.care.renewals) {
    pairs.emplace_back(one.discarded ? "discarded" : "to be made again",
                       fmt::format("up to attempt {}{}{}", one.after_attempt,
                                   one.why.empty() ? "" : ": ", one.why));
  }
  if (results::is_to_renew(shown.facts)) {
    pairs.emplace_back("result", fmt::format("attempt {} counts until a later one finishes",
                                             *shown.facts.result_attempt));
  }
  print_pairs(out, ("trial " + shown.id).c_str(), pairs);
  if (!shown.remarks.all.empty()) out << "tags and notes\n";
  print_remarks(out, shown.remarks.all, "  ");

  pairs.clear();
  for (const ConfigurationEntry& entry : flat_configuration(shown.trial.config)) {
    pairs.emplace_back(entry.name, plain(entry.value) + (entry.usual ? "  (default)" : ""));
  }
  print_pairs(out, "configuration", pairs);

  pairs.clear();
  for (const results::AttemptFacts& attempt : shown.facts.attempts) {
    std::string text =
        fmt::format("{}, begun {}", to_string(attempt.outcome), moment_text(attempt.begun.time));
    if (attempt.ended_at) {
      text += ", took " + orchestrator::duration_text(*attempt.ended_at - attempt.begun.time);
    }
    if (attempt.begun.resume) {
      text += fmt::format(", from step {} of attempt {}", attempt.begun.resume->step,
                          attempt.begun.resume->attempt);
    }
    if (!attempt.reason.empty()) text += ": " + attempt.reason;
    pairs.emplace_back(std::to_string(attempt.attempt.number), text);
  }
  print_pairs(out, "attempts", pairs);
  print_attempt_details(out, shown.facts);

  pairs.clear();
  for (const Curve& curve : shown.curves) {
    pairs.emplace_back(
        fmt::format("{} {} {}", curve.series.split, curve.series.task, curve.series.name),
        curve_text(curve));
  }
  print_pairs(out, "metrics", pairs);

  pairs.clear();
  if (!shown.artifact_file.empty()) {
    std::error_code error;
    const bool there = std::filesystem::is_regular_file(shown.artifact_file, error);
    pairs.emplace_back("file", shown.artifact_file.string() + (there ? "" : "  (not there)"));
    if (shown.trial.bls_bits)
      pairs.emplace_back("bls_bits", fmt::format("{}", *shown.trial.bls_bits));
    if (there) {
      pairs.emplace_back("to use it", "petlab-trainer predict --artifact " +
                                          shell_word(shown.artifact_file.string()));
    }
  }
  if (shown.artifact && shown.artifact->selected_step) {
    pairs.emplace_back("selected step", std::to_string(*shown.artifact->selected_step));
  }
  if (shown.artifact && shown.artifact->train_seconds) {
    pairs.emplace_back("trained for", orchestrator::duration_text(*shown.artifact->train_seconds));
  }
  print_pairs(out, "artifact", pairs);

  pairs.clear();
  if (const results::AttemptFacts* attempt = told_attempt(shown.facts)) {
    const ordered_json all = provenance(shown, *attempt);
    for (const auto& [name, value] : all.items()) {
      if (name == "examples") {
        for (const auto& [task, splits] : value.items()) {
          pairs.emplace_back("examples of " + task, numbers_by_split(splits));
        }
        continue;
      }
      if (!name.ends_with("_said")) {
        pairs.emplace_back(name, plain(value));
        continue;
      }
      const std::string who = name.substr(0, name.find('_'));
      for (const auto& [key, part] : value.items()) {
        // Packages are many: --code lists them.
        pairs.emplace_back(who + " " + key, part.is_object()
                                                ? fmt::format("{} (--code)", part.size())
                                                : plain(part));
      }
    }
  }
  print_pairs(out, "provenance", pairs);
}

// Reads what told_attempt() ran.
ShownCode read_code(const ShowArguments& arguments) {
  const std::filesystem::path database = arguments.database_path();
  const results::Reader reader(database);
  ShownCode code;
  code.trial_id = orchestrator::find_trial(reader, database, arguments.trial);
  code.runs = arguments.runs_path();
  const results::TrialFacts facts =
      reader.trial_facts(std::vector<std::string>{code.trial_id}).front();
  const results::AttemptFacts* attempt = told_attempt(facts);
  if (attempt == nullptr) {
    throw std::invalid_argument(
        fmt::format("{}: the trial has no attempt, so it ran no code", code.trial_id));
  }
  code.attempt = attempt->attempt.number;
  code.said = reader.provenance(attempt->attempt);
  return code;
}

}  // namespace

std::function<int()> make_show(CLI::App& app, Streams streams) {
  const auto arguments = std::make_shared<ShowArguments>();
  app.add_option("TRIAL", arguments->trial, "id of a trial, or its beginning")->required();
  add_json_option(app, arguments->json, "print one JSON object, every value of every metric");
  CLI::Option* code =
      app.add_flag("--code", arguments->code, "what it ran: command, commit, versions of packages");
  app.add_flag("--diff", arguments->diff, "print the uncommitted changes of its code")
      ->excludes(code);
  add_stored_arguments(app, *arguments);
  add_worker_argument(app, *arguments);
  add_retries_option(app, arguments->retries, "as for petlab run");
  return [arguments, streams] {
    if (arguments->diff && arguments->json) {
      throw std::invalid_argument(
          "found --diff and --json, expected --code --json, which has both");
    }
    if (arguments->diff) print_diff(streams.out, streams.err, read_code(*arguments));
    if (arguments->code) print_code(streams.out, read_code(*arguments), arguments->json);
    if (arguments->diff || arguments->code) return static_cast<int>(kDone);
    const Shown shown = read_trial(*arguments);
    if (arguments->json) {
      streams.out << shown_json(shown).dump(2, ' ', false, ordered_json::error_handler_t::replace)
                  << "\n";
    } else {
      print_shown(shown, streams.out);
    }
    return static_cast<int>(kDone);
  };
}

}  // namespace petlab::cli
