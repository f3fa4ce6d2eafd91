#include "reports/load.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "metrics/metric_table.h"
#include "reports/builds.h"
#include "reports/error.h"
#include "reports/losses.h"
#include "reports/selection.h"
#include "reports/words.h"
#include "results/attempt.h"
#include "results/store.h"
#include "results/trial_state.h"

namespace petlab::reports {
namespace {

using Json = nlohmann::ordered_json;
using results::AttemptFacts;

results::Value value_of(const Json& json) {
  if (json.is_null()) return std::monostate();
  if (json.is_boolean()) return std::int64_t{json.get<bool>() ? 1 : 0};
  if (json.is_number_integer()) return json.get<std::int64_t>();
  if (json.is_number()) return json.get<double>();
  return json.is_string() ? json.get<std::string>() : json.dump();
}

// module.kind as the column module_kind, as the views have it.
void flatten(const Json& group, const std::string& prefix,
             std::map<std::string, results::Value>& fields) {
  for (const auto& [key, value] : group.items()) {
    const std::string name = prefix + key;
    if (value.is_object()) {
      flatten(value, name + "_", fields);
    } else if (name != "task" && name != "tasks") {
      fields[name] = value_of(value);
    }
  }
}

std::vector<std::string> tasks_of(const Json& config) {
  if (config.contains("tasks")) return config.at("tasks").get<std::vector<std::string>>();
  if (config.contains("task")) return {config.at("task").get<std::string>()};
  return {};
}

// The attempt whose scores the views show.
const AttemptFacts* counting(const results::TrialFacts& facts) {
  for (const AttemptFacts& attempt : facts.attempts) {
    if (attempt.attempt.number == facts.result_attempt) return &attempt;
  }
  return nullptr;
}

// What the latest attempts ran with: per worker its numerics version, per task its data.
class Latest {
 public:
  void add(const AttemptFacts& attempt) {
    if (!attempt.started_at) return;
    note(versions_[attempt.worker], *attempt.started_at,
         results::numerics_version(attempt.numerics));
    for (const auto& [task, digest] : attempt.data_digests) {
      note(digests_[task], *attempt.started_at, digest);
    }
  }
  bool is_stale(const AttemptFacts& attempt) const {
    if (differs(versions_, attempt.worker, results::numerics_version(attempt.numerics)))
      return true;
    return std::any_of(
        attempt.data_digests.begin(), attempt.data_digests.end(),
        [&](const auto& entry) { return differs(digests_, entry.first, entry.second); });
  }

 private:
  struct Known {
    double time = 0;
    std::string value;
  };
  using ByName = std::map<std::string, Known>;

  static void note(Known& known, double time, const std::string& value) {
    if (value.empty() || (!known.value.empty() && time <= known.time)) return;
    known = {time, value};
  }
  static bool differs(const ByName& all, const std::string& name, const std::string& value) {
    const auto found = all.find(name);
    return found != all.end() && !value.empty() && !found->second.value.empty() &&
           found->second.value != value;
  }

  ByName versions_;
  ByName digests_;
};

// The trials of one sweep, a trial once for each of its variants.
class SweepLoader {
 public:
  SweepLoader(const results::Reader& reader, Dataset& data) : reader_(reader), data_(data) {}

  void load(const std::string& name) {
    reader_.each_member(name, [&](const results::SweepRow::Member& member,
                                  const results::TrialRow& row, const results::TrialFacts& facts) {
      for (const AttemptFacts& attempt : facts.attempts) latest_.add(attempt);
      data_.trials.push_back(trial(name, member, row, facts));
      facts_.push_back(facts);
    });
  }

  // Once every sweep is loaded: a state depends on the latest attempt of all of them.
  void find_states() {
    for (std::size_t i = 0; i < data_.trials.size(); ++i) {
      Trial& trial = data_.trials[i];
      const AttemptFacts* result = counting(facts_[i]);
      trial.stale = result != nullptr && latest_.is_stale(*result);
      results::StateContext context;
      context.sweep = trial.sweep;
      context.alive = [](const AttemptFacts&) { return true; };
      context.outdated = [&](const AttemptFacts&) { return trial.stale; };
      trial.state = to_string(results::state_of(facts_[i], context).state);
      trial.fields["state"] = trial.state;
      trial.attempts = std::move(facts_[i].attempts);
    }
  }

 private:
  Trial trial(const std::string& sweep, const results::SweepRow::Member& member,
              const results::TrialRow& row, const results::TrialFacts& facts) {
    Trial made;
    made.sweep = sweep;
    made.variant = member.variant;
    made.id = member.trial_id;
    const Json config = Json::parse(row.config);
    flatten(config, "", made.fields);
    for (const auto& [field, value] : made.fields) data_.configuration.insert(field);
    made.tasks = tasks_of(config);
    made.seed = config.value("seed", std::int64_t{0});
    std::string tasks;
    for (const std::string& task : made.tasks) tasks += (tasks.empty() ? "" : ",") + task;
    made.fields["task"] = tasks;
    made.fields["tasks"] = tasks;
    made.fields["sweep"] = sweep;
    made.fields["variant"] =
        member.variant.empty() ? results::Value() : results::Value(member.variant);
    made.fields["trial_id"] = made.id;
    made.fields["bls_bits"] = row.bls_bits ? results::Value(*row.bls_bits) : results::Value();
    made.fields["stored_bits"] =
        row.stored_bits ? results::Value(*row.stored_bits) : results::Value();
    made.fields["peak_memory_mib"] = results::Value();
    made.fields["train_seconds"] = results::Value();
    if (const AttemptFacts* attempt = counting(facts)) {
      made.numerics = attempt->numerics;
      made.fields["attempt"] = attempt->attempt.number;
      if (attempt->peak_memory_mib) made.fields["peak_memory_mib"] = *attempt->peak_memory_mib;
      if (attempt->train_seconds) made.fields["train_seconds"] = *attempt->train_seconds;
    }
    return made;
  }

  const results::Reader& reader_;
  Dataset& data_;
  Latest latest_;
  std::vector<results::TrialFacts> facts_;  // by trial of data_
};

// The conditions of `where` that the database can apply: those on texts of a metric's own columns.
std::string pushed_down(const Selection& where, std::vector<results::Value>& parameters) {
  std::string sql;
  for (const Condition& condition : where.conditions) {
    const bool of_score =
        condition.field == "split" || condition.field == "name" || condition.field == "task";
    const bool texts = std::all_of(
        condition.any_of.begin(), condition.any_of.end(),
        [](const results::Value& value) { return std::holds_alternative<std::string>(value); });
    if (!of_score || !texts) continue;
    std::vector<std::string> places;
    for (const results::Value& value : condition.any_of) {
      parameters.push_back(value);
      places.push_back(fmt::format("?{}", parameters.size()));
    }
    sql += fmt::format(" AND {} IN ({})", condition.field, fmt::join(places, ", "));
  }
  return sql;
}

// `AND trial_id IN …` where the selection leaves trials of the sweep out; empty where it takes all.
// What a worker measured is not known before its scores are read.
std::string of_selected_trials(
    const Selection& where, const std::map<std::pair<std::string, std::string>, std::size_t>& index,
    const Dataset& data, std::vector<results::Value>& parameters) {
  for (const Condition& condition : where.conditions) {
    if (condition.field == "bls_bits" || condition.field == "stored_bits") return {};
  }
  Json ids = Json::array();
  for (const auto& [key, place] : index) {
    if (matches(where, data.trials[place])) ids.push_back(key.second);
  }
  if (ids.size() == index.size()) return {};
  parameters.emplace_back(ids.dump());
  return fmt::format(" AND trial_id IN (SELECT value FROM json_each(?{}))", parameters.size());
}

double number(const results::Value& value) {
  if (const auto* whole = std::get_if<std::int64_t>(&value)) return static_cast<double>(*whole);
  return std::get<double>(value);
}

void load_scores(const std::filesystem::path& database, const std::string& sweep,
                 const Selection& where, Dataset& data) {
  std::map<std::pair<std::string, std::string>, std::size_t> index;  // variant and trial
  for (std::size_t i = 0; i < data.trials.size(); ++i) {
    const Trial& trial = data.trials[i];
    if (trial.sweep == sweep) index[{trial.variant, trial.id}] = i;
  }
  std::vector<results::Value> parameters = {sweep};
  const std::string conditions =
      pushed_down(where, parameters) + of_selected_trials(where, index, data, parameters);
  const results::QueryResult found = results::query(
      database,
      "SELECT variant, trial_id, step, split, task, name, value, bls_bits, stored_bits FROM "
      "sweep_results WHERE sweep = ?1" +
          conditions,
      parameters);
  const auto text = [](const results::Value& value) {
    const auto* held = std::get_if<std::string>(&value);
    return held == nullptr ? std::string() : *held;
  };
  for (const std::vector<results::Value>& row : found.rows) {
    const auto place = index.find({text(row[0]), text(row[1])});
    if (place == index.end()) continue;  // joined the sweep between the two queries
    Score score;
    score.trial = place->second;
    score.step = std::get<std::int64_t>(row[2]);
    score.split = text(row[3]);
    score.task = text(row[4]);
    score.name = text(row[5]);
    if (row[6].index() != 0) score.value = number(row[6]);
    data.scores.push_back(std::move(score));
    // What the worker measured stands before what the plan computed.
    std::map<std::string, results::Value>& fields = data.trials[place->second].fields;
    if (row[7].index() != 0) fields["bls_bits"] = row[7];
    if (row[8].index() != 0) fields["stored_bits"] = row[8];
  }
}

void load_known_words(const std::filesystem::path& database, Dataset& data) {
  std::set<std::string>& names = data.known_words["name"];
  for (const metrics::MetricRow& metric : metrics::metric_table()) names.emplace(metric.name);
  std::set<std::string>& tasks = data.known_words["task"];
  for (const Trial& trial : data.trials) tasks.insert(trial.tasks.begin(), trial.tasks.end());
  std::set<std::string>& splits = data.known_words["split"];
  splits.insert({"train", "validation", "test", kProgressSplit});
  data.known_words["state"] = {"new",    "running", "interrupted", "done",
                               "cached", "stale",   "failed",      "cancelled"};
  // The table and not a view of it: a row for each, where a view has one for each value.
  const results::QueryResult series =
      results::query(database, "SELECT split, task, name FROM series", {});
  for (const std::vector<results::Value>& row : series.rows) {
    splits.insert(std::get<std::string>(row[0]));
    tasks.insert(std::get<std::string>(row[1]));
    names.insert(std::get<std::string>(row[2]));
  }
}

bool has_published_numbers(const Definition& definition) {
  const auto of_series = [](const SeriesSpec& series) { return !series.published.empty(); };
  return std::any_of(definition.sections.begin(), definition.sections.end(),
                     [&](const SectionSpec& section) {
                       if (const auto* table = std::get_if<TableSpec>(&section))
                         return !table->published.empty();
                       const auto& figure = std::get<FigureSpec>(section);
                       return std::any_of(figure.series.begin(), figure.series.end(), of_series);
                     });
}

}  // namespace

std::vector<std::string> choose_sweeps(const Definition& definition,
                                       const std::vector<std::string>& named,
                                       const std::filesystem::path& database) {
  const std::vector<std::string> known = results::Reader(database).sweep_names();
  const std::vector<std::string>& wanted = named.empty() ? definition.sweeps : named;
  if (known.empty()) {
    throw Error(fmt::format("{}: it has no sweep yet; petlab run SWEEP.yaml --db {} makes one",
                            database.string(), database.string()));
  }
  if (wanted.empty()) {
    if (known.size() == 1) return known;
    throw std::invalid_argument(
        fmt::format("{} has {} sweeps, report {} shows one: name it with --sweep (there are: {})",
                    database.string(), known.size(), definition.name, joined(known)));
  }
  for (const std::string& sweep : wanted) {
    if (std::find(known.begin(), known.end(), sweep) != known.end()) continue;
    if (named.empty() && has_published_numbers(definition)) continue;
    throw std::invalid_argument(fmt::format(
        "report {} is about sweep '{}', which {} does not have{} (it has: {}); run that sweep "
        "first, or name another with --sweep",
        definition.name, sweep, database.string(), did_you_mean(sweep, known), joined(known)));
  }
  return wanted;
}

Dataset load_dataset(const std::filesystem::path& database, const std::vector<std::string>& sweeps,
                     const Selection& where) {
  Dataset data;
  const results::Reader reader(database);
  {
    SweepLoader loader(reader, data);
    const std::vector<std::string> known = reader.sweep_names();
    for (const std::string& sweep : sweeps) {
      if (std::find(known.begin(), known.end(), sweep) != known.end()) loader.load(sweep);
    }
    loader.find_states();
  }
  for (const std::string& sweep : sweeps) load_scores(database, sweep, where, data);
  const results::QueryResult none =
      results::query(database, "SELECT * FROM sweep_results LIMIT 0", {});
  data.other_fields.insert(none.columns.begin(), none.columns.end());
  load_known_words(database, data);
  data.builds = builds_of(database, sweeps);
  return data;
}

}  // namespace petlab::reports
