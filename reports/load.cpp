#include "reports/load.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "metrics/metric_table.h"
#include "questions/conditions.h"
#include "reports/builds.h"
#include "reports/error.h"
#include "reports/losses.h"
#include "reports/selection.h"
#include "reports/words.h"
#include "results/attempt.h"
#include "results/examples.h"
#include "results/left_out.h"
#include "results/scores.h"
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
void flatten(const Json& group, const std::string& prefix, Fields& fields) {
  for (const auto& [key, value] : group.items()) {
    const std::string name = prefix + key;
    if (value.is_object()) {
      flatten(value, name + "_", fields);
    } else if (name != "task" && name != "tasks") {
      fields[name] = value_of(value);
    }
  }
}

// As the columns of the views.
void fill_left_out(Fields& fields) {
  const auto found = fields.find("module_kind");
  const auto* kind = found == fields.end() ? nullptr : std::get_if<std::string>(&found->second);
  for (auto& [column, value] :
       results::values_where_left_out(kind == nullptr ? std::string() : *kind)) {
    fields.try_emplace(column, std::move(value));
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
    note(versions_[attempt.worker], *attempt.started_at, version_in(attempt.numerics));
    for (const auto& [task, digest] : attempt.data_digests) {
      note(digests_[task], *attempt.started_at, digest);
    }
  }
  bool is_stale(const AttemptFacts& attempt) {
    if (differs(versions_, attempt.worker, version_in(attempt.numerics))) return true;
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

  // Most attempts of a sweep say the same.
  const std::string& version_in(const std::string& numerics) {
    const auto [known, is_new] = known_versions_.try_emplace(numerics);
    if (is_new) known->second = results::numerics_version(numerics);
    return known->second;
  }

  ByName versions_;
  ByName digests_;
  std::unordered_map<std::string, std::string> known_versions_;
};

// The trials of one sweep, a trial once for each of its variants.
class SweepLoader {
 public:
  SweepLoader(const results::Reader& reader, const Wanted& wanted, const results::IsAlive& alive,
              Dataset& data)
      : reader_(reader), wanted_(wanted), alive_(alive), data_(data) {}

  void load(const std::string& name) {
    reader_.each_member(name, [&](const results::SweepRow::Member& member,
                                  const results::TrialRow& row, const results::TrialFacts& facts) {
      for (const AttemptFacts& attempt : facts.attempts) latest_.add(attempt);
      if (wanted_.members && !wanted_.members->contains({name, member.variant, member.trial_id})) {
        return;
      }
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
      context.alive = alive_;
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
    read_configuration(row.config, made);
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

  // Trials that differ in the seed alone are read once: by the text without it.
  void read_configuration(const std::string& text, Trial& trial) {
    constexpr std::string_view kSeed = "\"seed\":";
    const std::size_t seed = text.find(kSeed);
    // The trial's own, of no group within.
    const bool has_seed = seed != std::string::npos && text.rfind('{', seed) == 0;
    std::string rest = text;
    if (has_seed) rest.erase(seed, text.find_first_of(",}", seed) - seed);
    const auto [known, is_new] =
        configurations_.try_emplace(std::move(rest), Configuration{configurations_.size() + 1});
    Configuration& configuration = known->second;
    if (is_new) {
      const Json config = Json::parse(text);
      Fields fields;
      flatten(config, "", fields);
      configuration.tasks = tasks_of(config);
      configuration.seed = config.value("seed", std::int64_t{0});
      fill_left_out(fields);
      for (const auto& [field, value] : fields) data_.configuration.insert(field);
      fields.erase("seed");  // each trial's own
      configuration.fields = std::make_shared<const Fields>(std::move(fields));
    }
    trial.configuration = configuration.number;
    trial.common = configuration.fields;
    trial.tasks = configuration.tasks;
    trial.seed = configuration.seed;
    if (has_seed) read_seed(text, seed + kSeed.size(), trial);
    trial.fields["seed"] = trial.seed;
  }

  static void read_seed(const std::string& text, std::size_t at, Trial& trial) {
    const char* const begin = text.data() + at;
    const auto [end, error] = std::from_chars(begin, text.data() + text.size(), trial.seed);
    if (error != std::errc() || (*end != ',' && *end != '}')) {
      trial.seed = Json::parse(text).at("seed").get<std::int64_t>();
    }
  }

  struct Configuration {
    std::size_t number = 0;
    std::shared_ptr<const Fields> fields = nullptr;
    std::vector<std::string> tasks = {};
    std::int64_t seed = 0;
  };

  const results::Reader& reader_;
  const Wanted& wanted_;
  const results::IsAlive& alive_;
  Dataset& data_;
  std::unordered_map<std::string, Configuration> configurations_;
  Latest latest_;
  std::vector<results::TrialFacts> facts_;  // by trial of data_
};

// The metrics of the trials, which are of these sweeps.
void load_scores(const results::Reader& reader, const std::vector<std::string>& sweeps,
                 const Wanted& wanted, Dataset& data) {
  std::unordered_map<std::string, std::vector<std::size_t>> places;  // of each sweep and variant
  for (std::size_t i = 0; i < data.trials.size(); ++i) {
    if (wanted.trial(data.trials[i])) places[data.trials[i].id].push_back(i);
  }
  if (places.empty()) return;
  results::ScoreQuestion question;
  using Steps = results::ScoreQuestion::Steps;
  question.steps = wanted.every_step ? Steps::every : Steps::selected;
  question.fields = {results::word_named("bls_bits"), results::word_named("stored_bits")};
  question.where = {questions::one_of("sweep", {sweeps.begin(), sweeps.end()})};
  question.configurations = false;
  question.wants_trial = [&](const std::string& id) { return places.contains(id); };
  question.wants_series = [&](const results::SeriesName& name) {
    return wanted.series({name.split, name.task, name.name});
  };
  std::unordered_map<std::int64_t, std::shared_ptr<const Series>> known;
  results::ScoreReader(reader).each(question, [&](const results::ScoredTrial& trial) {
    if (!trial.has_result) return;
    for (const std::size_t place : places.at(trial.trial_id)) {
      // What the worker measured stands before what the plan computed.
      data.trials[place].fields["bls_bits"] = trial.fields[0];
      data.trials[place].fields["stored_bits"] = trial.fields[1];
      for (const results::Score& score : trial.scores) {
        std::shared_ptr<const Series>& series = known[score.series->key];
        if (series == nullptr) {
          series = std::make_shared<const Series>(
              Series{score.series->split, score.series->task, score.series->name});
        }
        Trial& its = data.trials[place];
        for (std::vector<std::string>* tasks : {&its.tasks, &its.other_tasks}) {
          if (std::find(tasks->begin(), tasks->end(), series->task) != tasks->end()) break;
          if (tasks == &its.other_tasks) tasks->push_back(series->task);
        }
        data.scores.push_back({place, score.step, series, score.value, score.counts});
      }
    }
  });
}

// What the trials of one sweep, data.trials from `begin` to `end`, were trained and scored on.
void load_examples(const results::Reader& reader, const std::string& sweep, std::size_t begin,
                   std::size_t end, Dataset& data) {
  const auto examples = results::examples_in(reader, sweep);
  for (std::size_t i = begin; i < end; ++i) {
    const auto found = examples.find(data.trials[i].id);
    if (found != examples.end()) data.trials[i].examples = found->second;
  }
}

void load_known_words(const results::Reader& reader, Dataset& data) {
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
      results::query(reader, "SELECT split, task, name FROM series");
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
                                       const std::filesystem::path& database,
                                       const std::vector<std::string>& known) {
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

Dataset load_dataset(const results::Reader& reader, const std::vector<std::string>& sweeps,
                     const Wanted& wanted, const results::IsAlive& alive) {
  Dataset data;
  struct Loaded {
    std::string sweep;
    std::size_t begin;
    std::size_t end;
  };
  std::vector<Loaded> loaded;  // with its trials
  SweepLoader loader(reader, wanted, alive, data);
  const std::vector<std::string> known = reader.sweep_names();
  for (const std::string& sweep : sweeps) {
    if (std::find(known.begin(), known.end(), sweep) == known.end()) continue;
    const std::size_t begin = data.trials.size();
    loader.load(sweep);
    loaded.push_back({sweep, begin, data.trials.size()});
  }
  loader.find_states();
  load_scores(reader, sweeps, wanted, data);
  if (wanted.examples) {
    for (const Loaded& one : loaded) {
      load_examples(reader, one.sweep, one.begin, one.end, data);
    }
  }
  const results::QueryResult none = results::query(reader, "SELECT * FROM sweep_results LIMIT 0");
  data.other_fields.insert(none.columns.begin(), none.columns.end());
  load_known_words(reader, data);
  data.builds = builds_of(reader, sweeps);
  return data;
}

}  // namespace petlab::reports
