#include "questions/conditions.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "base/nearest_word.h"

namespace petlab::questions {
namespace {

using results::Condition;
using results::Value;
using results::Word;

constexpr int kMostKnownValues = 1000;

// All meanings of an unquoted value if the field's type is unknown. SQLite and definitions compare
// with each.
std::vector<Value> free_values(const sweeps::WrittenValue& written) {
  if (written.quoted) return {written.text};
  const nlohmann::json json = nlohmann::json::parse(written.text, nullptr, false);
  if (json.is_null()) return {Value()};
  if (json.is_boolean() || json.is_number()) return {value_of(json), written.text};
  return {written.text};
}

// Quotes a text and doubles quotes inside.
std::string quoted(const std::string& text) {
  std::string quoted_text = "'";
  for (const char c : text) quoted_text += c == '\'' ? "''" : std::string(1, c);
  return quoted_text + "'";
}

std::string value_text(const Value& value) {
  const auto* text = std::get_if<std::string>(&value);
  return text == nullptr ? results::exact_text(value, "null") : quoted(*text);
}

}  // namespace

std::string where_text(const std::vector<Condition>& conditions) {
  std::string all;
  for (const Condition& condition : conditions) {
    std::vector<std::string> values;
    for (std::size_t i = 0; i < condition.values.size(); ++i) {
      const auto* text = std::get_if<std::string>(&condition.values[i]);
      const bool second_reading = !condition.word.user_key.empty() && text != nullptr && i > 0 &&
                                  !std::holds_alternative<std::string>(condition.values[i - 1]);
      if (!second_reading) {
        values.push_back(value_text(condition.values[i]));
      } else if (free_values({*text, false}).size() > 1) {
        values.back() = *text;  // an unquoted value has both meanings
      } else {
        values.push_back(quoted(*text));
      }
    }
    all += fmt::format("{}{}{}{}", all.empty() ? "" : " and ", condition.word.name,
                       results::operator_text(condition.op), fmt::join(values, ","));
  }
  return all;
}

Value value_of(const nlohmann::json& json) {
  if (json.is_null()) return std::monostate();
  if (json.is_boolean()) return std::int64_t{json.get<bool>() ? 1 : 0};
  // As SQLite reads the `user` JSON of an earlier petlab.
  constexpr auto kLargest = std::uint64_t{std::numeric_limits<std::int64_t>::max()};
  if (json.is_number_unsigned() && json.get<std::uint64_t>() > kLargest) return json.get<double>();
  if (json.is_number_integer()) return json.get<std::int64_t>();
  if (json.is_number()) return json.get<double>();
  return json.is_string() ? json.get<std::string>() : json.dump();
}

Word field_named(std::string_view text) {
  static const std::vector<Word> only_reports = {
      {"split", sweeps::FieldType::text, results::WordScope::score, "", ""},
      {"step", sweeps::FieldType::integer, results::WordScope::score, "", ""},
      {"state", sweeps::FieldType::text, results::WordScope::trial, "", ""},
      {"bls_percent", sweeps::FieldType::number, results::WordScope::trial, "", ""},
      {"ft_params_percent", sweeps::FieldType::number, results::WordScope::trial, "", ""},
      {"bls_formula", sweeps::FieldType::text, results::WordScope::trial, "", ""},
  };
  for (const Word& word : only_reports) {
    if (word.name == text) return word;
  }
  constexpr std::string_view kUser = "user_";
  if (text.starts_with(kUser)) {
    return results::word_named("user." + std::string(text.substr(kUser.size())));
  }
  std::vector<std::string_view> names;
  for (const Word& word : only_reports) names.push_back(word.name);
  return results::word_named(text, names);
}

Condition typed(const sweeps::WrittenCondition& written, Word word) {
  Condition condition{std::move(word), written.comparison, {}};
  const bool listed = written.comparison == sweeps::Comparison::equal ||
                      written.comparison == sweeps::Comparison::unequal;
  if (condition.word.scope == results::WordScope::tag && !listed) {
    throw std::invalid_argument("tag: found a comparison by size, expected = or !=");
  }
  if (condition.word.user_key.empty()) {
    for (const nlohmann::json& value : sweeps::typed_values(written, condition.word.type)) {
      condition.values.push_back(value_of(value));
    }
    return condition;
  }
  for (const sweeps::WrittenValue& value : written.values) {
    std::vector<Value> possible = free_values(value);
    if (!listed) possible.resize(1);
    condition.values.insert(condition.values.end(), possible.begin(), possible.end());
  }
  return condition;
}

Condition one_of(std::string_view field, std::vector<Value> values, int line) {
  return {field_named(field), Condition::Op::equal, std::move(values), line};
}

std::vector<Condition> parse_where(std::string_view text, std::string_view option) {
  std::vector<Condition> all;
  for (const sweeps::WrittenCondition& written : sweeps::parse_conditions(text, option)) {
    if (written.word == "split") {
      throw std::invalid_argument(
          fmt::format("{}: found split, expected a field{}", option,
                      option == "--where" ? ": the split is chosen with --split" : ""));
    }
    all.push_back(typed(written, results::word_named(written.word)));
  }
  return all;
}

std::vector<Word> parse_words(std::string_view text, std::string_view option) {
  std::vector<Word> all;
  while (true) {
    const std::size_t comma = text.find(',');
    std::string_view word = text.substr(0, comma);
    while (word.starts_with(' ')) word.remove_prefix(1);
    while (word.ends_with(' ')) word.remove_suffix(1);
    if (word.empty()) {
      throw std::invalid_argument(
          fmt::format("{}: found an empty word, expected fields divided by commas", option));
    }
    Word found = results::word_named(word);
    if (std::any_of(all.begin(), all.end(), [&](const Word& w) { return w.name == found.name; })) {
      throw std::invalid_argument(
          fmt::format("{}: found {} twice, expected it once", option, word));
    }
    all.push_back(std::move(found));
    if (comma == std::string_view::npos) return all;
    text.remove_prefix(comma + 1);
  }
}

void explain_nothing(const results::ScoreReader& reader, const std::vector<Condition>& where) {
  for (const Condition& condition : where) {
    if (condition.op != Condition::Op::equal) continue;
    const bool texts =
        std::all_of(condition.values.begin(), condition.values.end(),
                    [](const Value& value) { return std::holds_alternative<std::string>(value); });
    if (!texts) continue;
    const std::vector<std::string> known = reader.values_of(condition.word, kMostKnownValues);
    for (const Value& value : condition.values) {
      const auto& text = std::get<std::string>(value);
      if (std::find(known.begin(), known.end(), text) != known.end()) continue;
      const std::vector<std::string_view> words(known.begin(), known.end());
      const std::string_view nearest = base::nearest_word(text, words);
      std::string listed;
      if (known.empty()) {
        listed = "; no trial has one";
      } else if (!nearest.empty()) {
        listed = fmt::format("; did you mean {}?", nearest);
      } else if (known.size() <= 20) {
        listed = fmt::format("; there are {}", fmt::join(known, ", "));
      }
      throw std::invalid_argument(
          fmt::format("no trial has {} {}{}", condition.word.name, text, listed));
    }
  }
}

}  // namespace petlab::questions
