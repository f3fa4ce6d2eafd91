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

/// What a condition compares with; looked up once, as a sweep may have a million trials.
class KnownWord {
 public:
  explicit KnownWord(const Word& word) : word_(word) {
    for (const sweeps::Field& field : sweeps::fields()) {
      if (field.column == word.name) field_ = &field;
    }
    if (word.scope == WordScope::attempt || word.scope == WordScope::tag ||
        (word.scope == WordScope::score && !is("task"))) {
      throw std::invalid_argument(
          fmt::format("--only: found {}, wanted what a trial has before it is tried: a field, "
                      "task, variant, trial_id or a size",
                      word.name));
    }
  }

  /// All values that the trial has of it; a null where it has none.
  std::vector<json> values(const sweeps::Sweep& sweep, const sweeps::SweepTrial& trial) const {
    std::vector<json> all;
    if (field_ != nullptr) {
      if (sweeps::is_active(*field_, trial.config)) all.push_back(field_->get(trial.config));
    } else if (!word_.user_key.empty()) {
      const json user = json::parse(trial.config.user);
      if (const auto found = user.find(word_.user_key); found != user.end()) all.push_back(*found);
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
    if (all.empty()) all.emplace_back(nullptr);
    return all;
  }

 private:
  bool is(std::string_view name) const { return word_.name == name; }

  const Word& word_;
  const sweeps::Field* field_ = nullptr;
};

// As SQLite compares: numbers by size, switches as 0 and 1; a text never equals a number. Absent
// where there is no order.
std::optional<int> order_of(const json& have, const Value& want) {
  const auto sign = [](auto a, auto b) { return a < b ? -1 : a > b ? 1 : 0; };
  const auto* text = std::get_if<std::string>(&want);
  if (have.is_string() || text != nullptr) {
    if (!have.is_string() || text == nullptr) return std::nullopt;
    return sign(have.get_ref<const std::string&>().compare(*text), 0);
  }
  if (have.is_null() || std::holds_alternative<std::monostate>(want)) return std::nullopt;
  const json number = have.is_boolean() ? json(have.get<bool>() ? 1 : 0) : have;
  if (const auto* integer = std::get_if<std::int64_t>(&want)) {
    if (number.is_number_integer()) return sign(number.get<std::int64_t>(), *integer);
    return sign(number.get<double>(), static_cast<double>(*integer));
  }
  return sign(number.get<double>(), std::get<double>(want));
}

bool holds(const Condition& condition, const json& have) {
  const auto equals = [&](const Value& want) {
    if (std::holds_alternative<std::monostate>(want)) return have.is_null();
    return order_of(have, want) == 0;
  };
  const auto order = [&] { return order_of(have, condition.values.at(0)); };
  switch (condition.op) {
    case Condition::Op::equal:
      return std::any_of(condition.values.begin(), condition.values.end(), equals);
    case Condition::Op::unequal:
      return std::none_of(condition.values.begin(), condition.values.end(), equals);
    case Condition::Op::less:
      return order() == -1;
    case Condition::Op::at_most:
      return order() == -1 || order() == 0;
    case Condition::Op::greater:
      return order() == 1;
    case Condition::Op::at_least:
      break;
  }
  return order() == 1 || order() == 0;
}

/// Throws where a text that a condition asks for is none that a trial has, or none meets it.
void check_met(const sweeps::Sweep& sweep, const Condition& condition, const KnownWord& known,
               bool any) {
  std::set<std::string> texts;
  const bool wanted = condition.op == Condition::Op::equal;
  for (const sweeps::SweepTrial& trial : sweep.trials) {
    for (const json& value : known.values(sweep, trial)) {
      if (value.is_string()) texts.insert(value.get<std::string>());
    }
  }
  for (const Value& value : condition.values) {
    const auto* text = std::get_if<std::string>(&value);
    if (text == nullptr || !wanted || texts.contains(*text)) continue;
    const std::vector<std::string_view> words(texts.begin(), texts.end());
    const std::string_view nearest = base::nearest_word(*text, words);
    std::string hint;
    if (texts.empty()) {
      hint = "; none has one";
    } else if (!nearest.empty()) {
      hint = fmt::format("; did you mean {}?", nearest);
    } else if (texts.size() <= 20) {
      hint = fmt::format("; there are {}", fmt::join(texts, ", "));
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
        const std::vector<json> values = known.values(sweep, sweep.trials[at]);
        met[at] = std::any_of(values.begin(), values.end(),
                              [&](const json& value) { return holds(condition, value); });
      }
      const bool any = std::find(met.begin(), met.end(), true) != met.end();
      check_met(sweep, condition, known, any);
      std::erase_if(places, [&](std::size_t at) { return !met[at]; });
    }
  }
  if (places.empty()) {
    throw std::invalid_argument(
        fmt::format("--only: no trial of sweep {} meets all of {}: each condition is met by some",
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
