#include "cli/answers/diff.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <ostream>

#include "base/error.h"
#include "base/shallow_json.h"
#include "cli/options/database_option.h"
#include "cli/output/answer_output.h"
#include "cli/output/flat_configuration.h"
#include "orchestrator/recovery/control.h"
#include "protocol/code_record.h"
#include "results/code.h"
#include "results/examples.h"
#include "results/scores.h"

namespace petlab::cli {
namespace {

using results::Value;

struct DiffArguments {
  std::filesystem::path database;
  std::string trials[2];
  bool all = false;
  AnswerOutput output;
};

// What is compared, in one order: names, and the text of each value.
struct Comparable {
  std::vector<std::string> names;
  std::map<std::string, std::string> texts;

  void add(const std::string& name, const std::string& text) {
    if (texts.emplace(name, text).second) names.push_back(name);
  }
};

std::string json_text(const nlohmann::ordered_json& value) {
  return value.is_string()
             ? value.get<std::string>()
             : value.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

// What the attempt ran, in names that begin with `code.`. Files are named without their folder,
// which differs between machines.
void add_code(Comparable& made, const results::Provenance& said,
              const std::filesystem::path& runs) {
  const results::RanCode code = results::code_of(said);
  std::optional<protocol::CodeRecord> record;
  try {
    if (!code.record.empty()) record = protocol::read_code_record(runs, code.record);
  } catch (const base::Error&) {
    // The digests below tell whether the code differs, but not in what.
  }
  for (const auto& [name, value] : code.parts) {
    if (record && (name == "script" || name == "tree")) continue;
    std::string dotted = name;
    std::replace(dotted.begin(), dotted.end(), ' ', '.');
    made.add("code." + dotted, value);
  }
  if (!record) return;
  made.add("code.command", fmt::format("{}", fmt::join(record->command, " ")));
  for (const protocol::CodeFile& file : record->files) {
    made.add("code.file." + std::filesystem::path(file.path).filename().string(), file.digest);
  }
  if (const auto& repository = record->repository) {
    made.add("code.commit", repository->commit);
    made.add("code.branch", repository->branch);
    made.add("code.clean", repository->clean ? "true" : "false");
    for (const auto& [path, digest] : repository->changed) made.add("code.changed." + path, digest);
  }
  for (const auto& [name, value] : record->environment) made.add("code.environment." + name, value);
}

Comparable comparable_of(const results::Reader& reader, const results::ScoreReader& scores,
                         const std::string& id, const std::filesystem::path& runs) {
  Comparable made;
  for (const ConfigurationEntry& entry : flat_configuration(reader.trial(id).value().config)) {
    made.add(entry.name, json_text(entry.value));
  }
  const results::TrialFacts facts = reader.trial_facts(std::vector<std::string>{id}).front();
  for (const results::AttemptFacts& attempt : facts.attempts) {
    if (attempt.attempt.number != facts.result_attempt) continue;
    made.add("attempt.petlab", attempt.begun.commit);
    made.add("attempt.worker", attempt.worker);
    made.add("attempt.worker_version", attempt.worker_version);
    const nlohmann::json numerics = base::shallow_json_or_none(attempt.numerics);
    if (numerics.is_object()) {
      for (const auto& [name, value] : numerics.items()) {
        made.add("numerics." + name, json_text(value));
      }
    }
    made.add("attempt.host", attempt.begun.host);
    add_code(made, reader.provenance(attempt.attempt), runs);
    made.add("digest.backbone", attempt.backbone_digest);
    for (const auto& [task, digest] : attempt.data_digests) made.add("digest." + task, digest);
    for (const auto& [task, splits] : results::examples_of(reader, attempt.attempt)) {
      for (const auto& [split, number] : splits) {
        made.add(fmt::format("examples.{}.{}", task, split), std::to_string(number));
      }
    }
  }
  for (const results::SeriesName& one : scores.series_of(id)) {
    if (one.split == "train") continue;
    for (const results::HistoryPoint& point : scores.history(id, one)) {
      if (!point.counts) continue;
      made.add(fmt::format("{} {} {}", one.split, one.task, one.name),
               point.value ? fmt::format("{}", *point.value) : "undefined");
    }
  }
  return made;
}

int diff(const DiffArguments& arguments, Streams streams) {
  const std::filesystem::path database = database_to_read(arguments.database);
  const results::Reader reader(database);
  const results::ScoreReader scores(database);
  std::string ids[2];
  Comparable sides[2];
  for (int i = 0; i < 2; ++i) {
    ids[i] = orchestrator::find_trial(reader, database, arguments.trials[i]);
    sides[i] = comparable_of(reader, scores, ids[i], runs_folder_of(database, ""));
  }
  std::vector<std::vector<Value>> rows;
  const auto add = [&](const std::string& name) {
    Value values[2];
    for (int i = 0; i < 2; ++i) {
      const auto found = sides[i].texts.find(name);
      if (found != sides[i].texts.end()) values[i] = found->second;
    }
    if (arguments.all || values[0] != values[1]) rows.push_back({name, values[0], values[1]});
  };
  for (const std::string& name : sides[0].names) add(name);
  for (const std::string& name : sides[1].names) {
    if (!sides[0].texts.contains(name)) add(name);
  }
  arguments.output.print(streams.out, {"field", ids[0], ids[1]}, rows);
  if (rows.empty()) {
    print_notes(streams.err, {ids[0] == ids[1] ? "both are the same trial"
                                               : "they differ in nothing that is recorded here"});
  }
  return kDone;
}

}  // namespace

std::function<int()> make_diff(CLI::App& app, Streams streams) {
  const auto arguments = std::make_shared<DiffArguments>();
  app.add_option("A", arguments->trials[0], "id of a trial, or its beginning")->required();
  app.add_option("B", arguments->trials[1], "another")->required();
  app.add_flag("--all", arguments->all, "also what is equal");
  add_database_option(app, arguments->database);
  add_format_option(app, arguments->output);
  return [arguments, streams] { return diff(*arguments, streams); };
}

}  // namespace petlab::cli
