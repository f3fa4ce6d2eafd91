#include "questions/values.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>
#include <string_view>
#include <unordered_set>

#include "base/nearest_word.h"
#include "base/shallow_json.h"
#include "questions/conditions.h"
#include "sweeps/fields.h"

namespace petlab::questions {
namespace {

using results::ScoredTrial;
using results::ScoreQuestion;
using results::Value;
using results::Word;

ScoreQuestion question_of(const ValuesRequest& request) {
  ScoreQuestion question;
  question.where = request.where;
  question.metrics = request.metrics;
  question.splits = request.splits;
  question.steps = request.steps;
  question.members = ScoreQuestion::Members::joined;
  return question;
}

// Finds the fields in which trials with values differ.
class DifferingFields {
 public:
  void add(const ScoredTrial& trial) {
    const auto& values = trial.configuration_values;
    if (!values.empty()) configurations_.emplace_back(values.begin(), values.end());
    if (trial.scores().empty()) return;
    variants_.insert(trial.fields[0]);
    if (seen_.insert(trial.configuration).second) add(configurations_[trial.configuration]);
  }

  std::vector<Word> words() const {
    std::vector<Word> all;
    if (variants_.size() > 1 || (variants_.size() == 1 && !variants_.contains(Value()))) {
      all.push_back(results::word_named("variant"));
    }
    for (const sweeps::Field& field : sweeps::fields()) {
      if (field.name == "seed" || differing_.contains(std::string(field.column))) {
        all.push_back(results::word_named(field.name));
      }
    }
    for (const auto& [key, values] : user_) {
      // A key that is missing in some trials differs as well. Keys with a quote cannot be named in
      // questions.
      const bool in_all = std::all_of(values.begin(), values.end(), [&](const auto& value) {
        return value.second == seen_.size();
      });
      if ((values.size() > 1 || !in_all) && key.find('"') == std::string::npos) {
        all.push_back(results::word_named("user." + key));
      }
    }
    return all;
  }

 private:
  void add(const std::vector<Value>& values) {
    const std::vector<Word>& words = results::configuration_words();
    if (first_.empty()) first_ = values;
    for (std::size_t at = 0; at < words.size(); ++at) {
      if (values[at] != first_[at]) differing_.insert(words[at].name);
    }
    const auto* const user = std::get_if<std::string>(&values.back());
    const nlohmann::json keys = base::shallow_json_or_none(user == nullptr ? "" : *user);
    if (!keys.is_object()) return;
    for (const auto& [key, value] : keys.items()) ++user_[key][value.dump()];
  }

  std::vector<std::vector<Value>> configurations_;  // by index
  std::unordered_set<std::uint32_t> seen_;          // indices of configurations with a value
  std::vector<Value> first_;                        // values of configuration_words()
  std::set<std::string> differing_;                 // columns
  std::set<Value> variants_;
  std::map<std::string, std::map<std::string, std::size_t>> user_;  // configurations per key, value
};

std::vector<Word> differing_words(const results::ScoreReader& reader,
                                  const ValuesRequest& request) {
  ScoreQuestion question = question_of(request);
  question.steps = ScoreQuestion::Steps::selected;
  question.fields = {results::word_named("variant")};
  DifferingFields differing;
  reader.each(question, [&](const ScoredTrial& trial) { differing.add(trial); });
  return differing.words();
}

}  // namespace

void each_value(const results::ScoreReader& reader, const ValuesRequest& request,
                const ValueSink& sink) {
  check_names(reader, request.metrics, request.splits);
  std::vector<Word> words = request.by ? *request.by : differing_words(reader, request);
  std::erase_if(words, [](const Word& word) {
    return word.scope == results::WordScope::score || word.name == "trial_id";
  });
  ScoreQuestion question = question_of(request);
  question.fields = words;
  question.configurations = false;
  std::vector<std::string> columns = {"trial_id"};
  for (const Word& word : words) columns.push_back(word.name);
  columns.insert(columns.end(), {"task", "split", "metric", "step", "value"});
  bool empty = true;
  std::vector<Value> row;
  const auto begin = [&] {
    if (empty) sink.columns(columns);
    empty = false;
  };
  reader.each(question, [&](const ScoredTrial& trial) {
    for (const results::Score& score : trial.scores()) {
      begin();
      row = {trial.trial_id};
      row.insert(row.end(), trial.fields.begin(), trial.fields.end());
      row.emplace_back(score.series->task);
      row.emplace_back(score.series->split);
      row.emplace_back(score.series->name);
      row.emplace_back(score.step);
      row.push_back(score.value ? Value(*score.value) : Value());
      sink.row(row);
    }
  });
  if (empty) explain_nothing(reader, request.where);
  begin();
}

void check_names(const results::ScoreReader& reader, const std::vector<std::string>& metrics,
                 const std::vector<std::string>& splits) {
  std::set<std::string> known_splits;
  std::set<std::string> known_metrics;
  for (const results::SeriesName& one : reader.series()) {
    known_splits.insert(one.split);
    known_metrics.insert(one.name);
  }
  if (known_metrics.empty()) return;
  const auto check = [](const char* kind, const std::string& word,
                        const std::set<std::string>& known) {
    if (known.contains(word)) return;
    throw std::invalid_argument(
        base::unknown_word(kind, word, std::vector<std::string_view>(known.begin(), known.end())));
  };
  known_splits.insert({"train", "validation", "test"});
  for (const std::string& split : splits) check("split", split, known_splits);
  for (const std::string& metric : metrics) check("metric", metric, known_metrics);
}

}  // namespace petlab::questions
