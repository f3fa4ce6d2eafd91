#include "cli/running/only_trials.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>
#include <stdexcept>
#include <string_view>

#include "base/nearest_word.h"
#include "questions/conditions.h"
#include "sweeps/fields.h"

namespace petlab::cli {
namespace {

using nlohmann::json;
using results::Condition;
using results::Value;
using results::Word;
using results::WordScope;

/// A word of a condition, looked up once because a sweep may have a million trials.
class KnownWord {
 public:
  explicit KnownWord(const Word& word) : word_(word) {
    for (const sweeps::Field& field : sweeps::fields()) {
      if (field.column == word.name) field_ = &field;
    }
    if (word.scope == WordScope::attempt || word.scope == WordScope::tag ||
        (word.scope == WordScope::score && !is("task"))) {
      throw std::invalid_argument(
          fmt::format("--only: found {}, expected a property that a trial has before it runs: a "
                      "field, task, variant, trial_id or a size",
                      word.name));
    }
  }

  /// All of the trial's values for the word; one NULL if it has none.
  std::vector<Value> values(const sweeps::Sweep& sweep, const sweeps::SweepTrial& trial) const {
    std::vector<Value> all;
    if (field_ != nullptr) {
      if (sweeps::is_active(*field_, trial.config)) {
        all.push_back(questions::value_of(field_->get(trial.config)));
      }
    } else if (!word_.user_key.empty()) {
      const json user = json::parse(trial.config.user);
      if (const auto found = user.find(word_.user_key); found != user.end()) {
        all.push_back(questions::value_of(*found));
      }
    } else if (is("task")) {
      all.assign(trial.config.tasks.begin(), trial.config.tasks.end());
    } else if (is("tasks")) {
      all.emplace_back(fmt::format("{}", fmt::join(trial.config.tasks, ",")));
    } else if (is("variant")) {
      all.assign(trial.variants.begin(), trial.variants.end());
    } else if (is("sweep")) {
      all.emplace_back(sweep.name);
    } else if (is("trial_id")) {
      all.emplace_back(trial.id.value);
    } else if (is("user")) {
      all.emplace_back(trial.config.user);
    } else if (is("bls_bits")) {
      if (trial.bls_bits) all.emplace_back(*trial.bls_bits);
    } else if (is("stored_bits") && trial.storage) {
      all.emplace_back(metrics::stored_bits(*trial.storage));
    }
    if (all.empty()) all.emplace_back();
    return all;
  }

 private:
  bool is(std::string_view name) const { return word_.name == name; }

  const Word& word_;
  const sweeps::Field* field_ = nullptr;
};

/// Throws if no trial has a text that the condition requires, or no trial meets the condition.
void check_met(const sweeps::Sweep& sweep, const Condition& condition, const KnownWord& known,
               bool any) {
  // An unquoted number for a free-form key means the number or its text; either may match.
  if (any && !condition.word.user_key.empty()) return;
  std::set<std::string> texts;
  const bool wanted = condition.op == Condition::Op::equal;
  for (const sweeps::SweepTrial& trial : sweep.trials) {
    for (const Value& value : known.values(sweep, trial)) {
      if (const auto* text = std::get_if<std::string>(&value)) texts.insert(*text);
    }
  }
  for (const Value& value : condition.values) {
    const auto* text = std::get_if<std::string>(&value);
    if (text == nullptr || !wanted || texts.contains(*text)) continue;
    const std::vector<std::string_view> words(texts.begin(), texts.end());
    const std::string_view nearest = base::nearest_word(*text, words);
    std::string hint;
    if (texts.empty()) {
      hint = "; no trial has a value for it";
    } else if (!nearest.empty()) {
      hint = fmt::format("; did you mean {}?", nearest);
    } else if (texts.size() <= 20) {
      hint = fmt::format("; it has {}", fmt::join(texts, ", "));
    }
    throw std::invalid_argument(fmt::format("--only: no trial of sweep {} has {} {}{}", sweep.name,
                                            condition.word.name, *text, hint));
  }
  if (any) return;
  throw std::invalid_argument(fmt::format("--only: no trial of sweep {} meets the condition on {}",
                                          sweep.name, condition.word.name));
}

}  // namespace

void add_only_option(CLI::App& app, std::vector<std::string>& only) {
  app.add_option("--only", only, "only matching trials: variant=propetl,seed=42..44")
      ->type_name("CONDITIONS")
      ->type_size(1)
      ->allow_extra_args(false);
}

std::optional<std::vector<std::size_t>> only_trials(const sweeps::Sweep& sweep,
                                                    const std::vector<std::string>& only) {
  if (only.empty()) return std::nullopt;
  std::vector<std::size_t> places(sweep.trials.size());
  std::iota(places.begin(), places.end(), std::size_t{0});
  for (const std::string& text : only) {
    for (const Condition& condition : questions::parse_where(text, "--only")) {
      const KnownWord known(condition.word);
      std::vector<bool> met(sweep.trials.size());
      for (std::size_t at = 0; at < met.size(); ++at) {
        const std::vector<Value> values = known.values(sweep, sweep.trials[at]);
        met[at] = std::any_of(values.begin(), values.end(),
                              [&](const Value& value) { return results::holds(condition, value); });
      }
      const bool any = std::find(met.begin(), met.end(), true) != met.end();
      check_met(sweep, condition, known, any);
      std::erase_if(places, [&](std::size_t at) { return !met[at]; });
    }
  }
  if (places.empty()) {
    throw std::invalid_argument(fmt::format(
        "--only: no trial of sweep {} meets all of {}, although some trials meet each one",
        sweep.name, fmt::join(only, ", ")));
  }
  return places;
}

sweeps::Sweep part_of(const sweeps::Sweep& sweep, const std::vector<std::size_t>& places) {
  sweeps::Sweep part;
  static_cast<sweeps::SweepHead&>(part) = sweep;
  part.trials.reserve(places.size());
  for (const std::size_t at : places) {
    part.trials.push_back(sweep.trials[at]);
    for (const std::string& task : sweep.trials[at].config.tasks) {
      part.tasks.emplace(task, sweep.tasks.at(task));
    }
  }
  return part;
}

}  // namespace petlab::cli
