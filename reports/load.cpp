#include "reports/load.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <tuple>
#include <unordered_map>

#include "base/shallow_json.h"
#include "metrics/metric_table.h"
#include "questions/conditions.h"
#include "reports/builds.h"
#include "reports/error.h"
#include "reports/losses.h"
#include "reports/words.h"
#include "results/attempt.h"
#include "results/examples.h"
#include "results/remarks.h"
#include "results/scores.h"
#include "results/store.h"
#include "results/trial_state.h"

namespace petlab::reports {
namespace {

using results::AttemptFacts;

std::string text_in(const results::Value& value) {
  const auto* text = std::get_if<std::string>(&value);
  return text == nullptr ? std::string() : *text;
}

// The attempt whose scores the database's views show.
const AttemptFacts* counting(const results::TrialFacts& facts) {
  for (const AttemptFacts& attempt : facts.attempts) {
    if (attempt.attempt.number == facts.result_attempt) return &attempt;
  }
  return nullptr;
}

// The latest numerics version of each worker and the latest data digest of each task.
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

  // Cached, because most attempts of a sweep have the same numerics.
  const std::string& version_in(const std::string& numerics) {
    const auto [known, is_new] = known_versions_.try_emplace(numerics);
    if (is_new) known->second = results::numerics_version(numerics);
    return known->second;
  }

  ByName versions_;
  ByName digests_;
  std::unordered_map<std::string, std::string> known_versions_;
};

// Reads trials, once for each of their variants, and then their requested data.
class Loader {
 public:
  Loader(const results::Reader& reader, const Wanted& wanted, Dataset& data)
      : reader_(reader), wanted_(wanted), data_(data) {}

  void read_members(const std::string& sweep) {
    reader_.each_member(sweep, [&](const results::SweepRow::Member& member,
                                   const results::TrialRow&, const results::TrialFacts& facts) {
      for (const AttemptFacts& attempt : facts.attempts) latest_.add(attempt);
      places_.emplace(Member{sweep, member.variant, member.trial_id}, data_.trials.size());
      Trial& trial = data_.trials.emplace_back();
      trial.sweep = sweep;
      trial.variant = member.variant;
      trial.id = member.trial_id;
      if (const AttemptFacts* attempt = counting(facts)) trial.numerics = attempt->numerics;
      facts_.push_back(facts);
    });
  }

  // Call after reading all sweeps: trials of several sweeps then share what they ran.
  void read_code() {
    std::vector<std::string> ids;
    for (const Trial& trial : data_.trials) ids.push_back(trial.id);
    const results::CodeByTrial code = results::code_of_trials(reader_, ids);
    for (Trial& trial : data_.trials) {
      if (const auto found = code.find(trial.id); found != code.end()) trial.code = found->second;
    }
  }

  // Call after reading all sweeps: a state depends on the latest attempt in any of them.
  void find_states(const results::IsAlive& alive) {
    for (std::size_t i = 0; i < data_.trials.size(); ++i) {
      Trial& trial = data_.trials[i];
      const AttemptFacts* result = counting(facts_[i]);
      trial.stale = result != nullptr && latest_.is_stale(*result);
      results::StateContext context;
      context.sweep = trial.sweep;
      context.alive = alive;
      context.outdated = [&](const AttemptFacts&) { return trial.stale; };
      trial.state = to_string(results::state_of(facts_[i], context).state);
      trial.fields["state"] = trial.state;
      trial.attempts = std::move(facts_[i].attempts);
    }
  }

  // Call before read_values(), whose conditions may depend on tags.
  void read_tags() {
    const auto tags = results::tags_by_trial(reader_);
    for (Trial& trial : data_.trials) {
      if (const auto found = tags.find(trial.id); found != tags.end()) trial.tags = found->second;
    }
  }

  // Reads fields and scores of the trials of these sweeps, and drops trials that `where` does not
  // select.
  void read_values(const std::vector<std::string>& sweeps) {
    results::ScoreQuestion question;
    question.steps = wanted_.every_step ? results::ScoreQuestion::Steps::every
                                        : results::ScoreQuestion::Steps::selected;
    question.fields = words();
    question.where = wanted_.where;
    question.where.push_back(questions::one_of("sweep", {sweeps.begin(), sweeps.end()}));
    question.wants_series = [&](const results::SeriesName& name) {
      return wanted_.series({name.split, name.task, name.name});
    };
    std::vector<bool> selected(data_.trials.size());
    results::ScoreReader(reader_).each(question, [&](const results::ScoredTrial& found) {
      const auto place = places_.find(
          Member{text_in(found.fields[kSweep]), text_in(found.fields[kVariant]), found.trial_id});
      if (place == places_.end()) return;
      selected[place->second] = true;
      fill(data_.trials[place->second], question.fields, found);
      if (!found.has_result || !wanted_.trial(data_.trials[place->second])) return;
      for (const results::Score& score : found.scores()) add(place->second, score);
    });
    drop_others(selected);
  }

 private:
  using Member = std::tuple<std::string, std::string, std::string>;  // sweep, variant, trial
  static constexpr std::size_t kSweep = 0;                           // index in words()
  static constexpr std::size_t kVariant = 1;
  static constexpr std::size_t kSeed = 2;

  // The words that every report uses, then the requested fields. Configurations are read whole.
  std::vector<results::Word> words() const {
    std::vector<results::Word> words;
    const std::vector<results::Word>& whole = results::configuration_words();
    const auto add = [&](const std::string& name) {
      const auto is_it = [&](const results::Word& word) { return word.name == name; };
      const auto word = results::find_word(name);
      if (word && word->scope != results::WordScope::score && word->user_key.empty() &&
          std::none_of(words.begin(), words.end(), is_it) &&
          std::none_of(whole.begin(), whole.end(), is_it)) {
        words.push_back(*word);
      }
    };
    for (const char* name : {"sweep", "variant", "seed", "trial_id", "tasks", "attempt", "bls_bits",
                             "stored_bits", "peak_memory_mib", "train_seconds"}) {
      add(name);
    }
    std::for_each(wanted_.fields.begin(), wanted_.fields.end(), add);
    return words;
  }

  void fill(Trial& trial, const std::vector<results::Word>& words,
            const results::ScoredTrial& found) {
    for (std::size_t i = 0; i < words.size(); ++i) trial.fields[words[i].name] = found.fields[i];
    trial.fields["task"] = found.tasks;
    trial.tasks = results::listed(found.tasks);
    trial.seed = std::get<std::int64_t>(found.fields[kSeed]);
    trial.configuration = found.configuration + 1;
    if (!found.configuration_values.empty()) {
      configurations_.push_back(configuration(found.configuration_values));
    }
    trial.common = configurations_.at(found.configuration);
  }

  // Each key of the free-form group is a separate field.
  std::shared_ptr<const Fields> configuration(std::span<const results::Value> values) {
    Fields fields;
    const std::vector<results::Word>& words = results::configuration_words();
    for (std::size_t i = 0; i < words.size(); ++i) fields[words[i].name] = values[i];
    const nlohmann::json user = base::shallow_json_or_none(text_in(values.back()));
    fields.erase(words.back().name);
    if (user.is_object()) {
      for (const auto& [key, value] : user.items()) {
        fields["user." + key] = questions::value_of(value);
      }
    }
    for (const auto& [field, value] : fields) data_.configuration.insert(field);
    return std::make_shared<const Fields>(std::move(fields));
  }

  void add(std::size_t place, const results::Score& score) {
    std::shared_ptr<const Series>& series = series_[score.series->key];
    if (series == nullptr) {
      series = std::make_shared<const Series>(
          Series{score.series->split, score.series->task, score.series->name});
    }
    Trial& trial = data_.trials[place];
    for (std::vector<std::string>* tasks : {&trial.tasks, &trial.other_tasks}) {
      if (std::find(tasks->begin(), tasks->end(), series->task) != tasks->end()) break;
      if (tasks == &trial.other_tasks) tasks->push_back(series->task);
    }
    data_.scores.push_back({place, score.step, series, score.value, score.counts});
  }

  void drop_others(const std::vector<bool>& selected) {
    std::vector<std::size_t> places(selected.size());  // new indices of the selected trials
    std::size_t kept = 0;
    for (std::size_t i = 0; i < selected.size(); ++i) {
      if (!selected[i]) continue;
      places[i] = kept;
      if (i != kept) data_.trials[kept] = std::move(data_.trials[i]);
      ++kept;
    }
    data_.trials.resize(kept);
    for (Score& score : data_.scores) score.trial = places[score.trial];
  }

  const results::Reader& reader_;
  const Wanted& wanted_;
  Dataset& data_;
  std::map<Member, std::size_t> places_;                                    // index into trials
  std::vector<results::TrialFacts> facts_;                                  // by trial
  std::vector<std::shared_ptr<const Fields>> configurations_;               // by number
  std::unordered_map<std::int64_t, std::shared_ptr<const Series>> series_;  // by key
  Latest latest_;
};

// Loads the numbers of examples that the trials were trained and scored on.
void load_examples(const results::Reader& reader, const std::vector<std::string>& sweeps,
                   Dataset& data) {
  for (const std::string& sweep : sweeps) {
    const auto examples = results::examples_in(reader, sweep);
    for (Trial& trial : data.trials) {
      const auto found = examples.find(trial.id);
      if (trial.sweep == sweep && found != examples.end()) trial.examples = found->second;
    }
  }
}

void load_known_words(const results::Reader& reader, Dataset& data) {
  std::set<std::string>& names = data.known_words["name"];
  for (const metrics::MetricRow& metric : metrics::metric_table()) names.emplace(metric.name);
  std::set<std::string>& tasks = data.known_words["task"];
  for (const Trial& trial : data.trials) tasks.insert(trial.tasks.begin(), trial.tasks.end());
  std::set<std::string>& splits = data.known_words["split"];
  splits.insert({"train", "validation", "test", kProgressSplit});
  data.known_words["state"] = {"new",   "running", "interrupted", "done",         "cached",
                               "stale", "failed",  "cancelled",   "stopped early"};
  // Query the table rather than a view: it has one row per series, a view one per value.
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
                       const auto* figure = std::get_if<FigureSpec>(&section);
                       return figure != nullptr &&
                              std::any_of(figure->series.begin(), figure->series.end(), of_series);
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
  Loader loader(reader, wanted, data);
  for (const std::string& sweep : sweeps) loader.read_members(sweep);
  loader.find_states(alive);
  loader.read_code();
  if (wanted.fields.contains("tag")) loader.read_tags();
  loader.read_values(sweeps);
  if (wanted.examples) load_examples(reader, sweeps, data);
  load_known_words(reader, data);
  data.builds = builds_of(reader, sweeps);
  return data;
}

}  // namespace petlab::reports
