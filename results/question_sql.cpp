#include "results/question_sql.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string_view>
#include <variant>

#include "results/remarks.h"

namespace petlab::results::internal {
namespace {

// SQLite allows 2,000 columns and a condition depth of 1,000, part of which every question uses.
constexpr std::size_t kMostFields = 500;
constexpr std::size_t kMostConditions = 500;

void check_size(std::string_view what, std::size_t found, std::size_t most) {
  if (found <= most) return;
  throw std::invalid_argument(fmt::format("found {} {}, expected at most {}", found, what, most));
}

// A trial may have several tags: any, or none, of them must match.
std::string tag_condition(const Condition& condition, Statement& statement) {
  const bool equal = condition.op == Condition::Op::equal;
  bool untagged = false;
  std::vector<std::string> places;
  for (const Value& one : condition.values) {
    if (std::holds_alternative<std::monostate>(one)) {
      untagged = true;
    } else {
      places.push_back(statement.bound(one));
    }
  }
  // Always part of the SQL, so that every bound value has its placeholder.
  const std::string list = fmt::format("{}", fmt::join(places, ", "));
  std::string text =
      fmt::format("EXISTS (SELECT 1 FROM ({}) WHERE tag IN ({}))", kTagsOfTrial, list);
  if (untagged) text += fmt::format(" OR NOT EXISTS (SELECT 1 FROM ({}))", kTagsOfTrial);
  return fmt::format("{}({})", equal ? "" : "NOT ", text);
}

std::string condition_text(const Condition& condition, Statement& statement) {
  const std::string value = expression(condition.word, statement);
  const bool equal = condition.op == Condition::Op::equal;
  if (!equal && condition.op != Condition::Op::unequal) {
    const Value& than = condition.values.at(0);
    const std::string text =
        fmt::format("{} {} {}", value, operator_text(condition.op), statement.bound(than));
    if (condition.word.user_key.empty()) return text;
    // SQLite orders every text after every number.
    return fmt::format("(typeof({}) {} 'text' AND {})", value,
                       std::holds_alternative<std::string>(than) ? "=" : "<>", text);
  }
  bool null = false;
  std::vector<std::string> places;
  for (const Value& one : condition.values) {
    if (std::holds_alternative<std::monostate>(one)) {
      null = true;
    } else {
      places.push_back(statement.bound(one));
    }
  }
  std::string text = null ? fmt::format("{} IS {}NULL", value, equal ? "" : "NOT ") : std::string();
  if (!places.empty()) {
    // A field that does not apply to a trial is unequal to every value.
    const std::string list = fmt::format("{}", fmt::join(places, ", "));
    text += text.empty() ? "" : equal ? " OR " : " AND ";
    text += equal ? fmt::format("{} IN ({})", value, list)
                  : fmt::format("({0} IS NULL OR {0} NOT IN ({1}))", value, list);
  }
  return "(" + text + ")";
}

constexpr const char* kMembers = "sweep_trials m JOIN sweeps w ON w.key = m.sweep";

// A trial's sweeps or variants as one text; NULL if it has none. Most trials have one, and grouping
// takes SQLite longer than the rest of a question.
std::string joined_members(const Word& word, Statement& statement) {
  const std::string from = fmt::format("FROM {} WHERE m.trial = t.key",
                                       word.name == "sweep" ? kMembers : "sweep_trials m");
  return fmt::format(
      "CASE (SELECT count(*) {1}) WHEN 1 THEN (SELECT {0} {1}) ELSE (SELECT group_concat(name, ', "
      "') FROM (SELECT {0} AS name {1} GROUP BY 1 HAVING name IS NOT NULL ORDER BY min(m.sweep), "
      "min(m.place))) END",
      expression(word, statement), from);
}

// Requires one membership of the trial to meet all conditions. A trial in no sweep counts as a
// membership with neither sweep nor variant.
std::string member_conditions(const std::vector<const Condition*>& conditions,
                              Statement& statement) {
  std::string where;
  bool met_by_none = true;
  for (const Condition* condition : conditions) {
    where += (where.empty() ? "" : " AND ") + condition_text(*condition, statement);
    met_by_none = met_by_none && holds(*condition, Value());
  }
  std::string text = fmt::format("t.key IN (SELECT m.trial FROM {} WHERE {})", kMembers, where);
  if (met_by_none) text += " OR t.key NOT IN (SELECT trial FROM sweep_trials)";
  return "(" + text + ")";
}

}  // namespace

std::string Statement::bound(const Value& value) {
  // SQLite's limit is 32,766.
  if (parameters.size() >= 30'000) {
    throw std::invalid_argument("found more than 30000 values to compare with, expected fewer");
  }
  parameters.push_back(value);
  return fmt::format("?{}", parameters.size());
}

void bind_all(Query& query, const std::vector<Value>& values) {
  for (const Value& value : values) {
    if (const auto* integer = std::get_if<std::int64_t>(&value)) {
      query.with(*integer);
    } else if (const auto* real = std::get_if<double>(&value)) {
      query.with(*real);
    } else if (const auto* text = std::get_if<std::string>(&value)) {
      query.with(std::string_view(*text));
    } else {
      query.null();
    }
  }
}

std::string expression(const Word& word, Statement& statement) {
  if (!word.user_key.empty()) {
    // SQLite's JSON paths cannot express a quotation mark.
    if (word.user_key.find('"') != std::string::npos) {
      throw std::invalid_argument(
          fmt::format("{}: a key with a quotation mark cannot be asked for", word.name));
    }
    // SQLite compares the key as written in the JSON, with its backslashes.
    const std::string key = nlohmann::json(word.user_key)
                                .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    return fmt::format("json_extract(t.user, {})", statement.bound("$." + key));
  }
  switch (word.scope) {
    case WordScope::member:
      return word.name == "sweep" ? "w.name" : "nullif(m.variant, '')";
    case WordScope::attempt:
      return word.name == "attempt" ? "a.number" : "a." + word.name;
    case WordScope::artifact:
      return fmt::format("coalesce(f.{0}, t.{0})", word.name);
    case WordScope::trial:
      if (!word.path.empty()) {
        return fmt::format("json_extract(t.config, {})", statement.bound(word.path));
      }
      return fmt::format("t.\"{}\"", word.name);
    case WordScope::tag:
      return fmt::format("(SELECT group_concat(tag) FROM ({} ORDER BY 1))", kTagsOfTrial);
    case WordScope::score:
      break;
  }
  throw std::logic_error(word.name + " is of a score, not of a trial");
}

Statement trials_of(const ScoreQuestion& question) {
  Statement statement;
  check_size("fields to tell trials apart by", question.fields.size(), kMostFields);
  check_size("conditions", question.where.size(), kMostConditions);
  // Conditions alone do not multiply a trial's rows.
  const bool member = question.members == ScoreQuestion::Members::apart &&
                      std::any_of(question.fields.begin(), question.fields.end(),
                                  [](const Word& word) { return word.scope == WordScope::member; });
  bool attempt = false;
  bool artifact = false;
  const auto needs = [&](const Word& word) {
    attempt = attempt || word.scope == WordScope::attempt;
    artifact = artifact || word.scope == WordScope::artifact;
  };
  std::string columns;
  for (const Word& word : question.fields) {
    needs(word);
    const bool joined = word.scope == WordScope::member && !member;
    columns += ", " + (joined ? joined_members(word, statement) : expression(word, statement));
  }
  std::vector<std::string> where = {
      "NOT EXISTS (SELECT 1 FROM hidden_trials h WHERE h.trial = t.key)"};
  std::vector<const Condition*> of_members;
  for (const Condition& condition : question.where) {
    if (condition.word.scope == WordScope::score) continue;
    needs(condition.word);
    if (condition.word.scope == WordScope::member && !member) {
      of_members.push_back(&condition);
    } else if (condition.word.scope == WordScope::tag) {
      where.push_back(tag_condition(condition, statement));
    } else {
      where.push_back(condition_text(condition, statement));
      // Without this, SQLite looks at all trials of the database.
      if (member && condition.word.name == "sweep" && condition.op == Condition::Op::equal) {
        where.push_back(member_conditions({&condition}, statement));
      }
    }
  }
  if (!of_members.empty()) where.push_back(member_conditions(of_members, statement));
  statement.sql = fmt::format(
      "SELECT t.key, t.trial_id, t.tasks, t.result_attempt, t.config{} FROM trials t{}{}{} WHERE "
      "{}{}",
      columns,
      member ? " LEFT JOIN sweep_trials m ON m.trial = t.key LEFT JOIN sweeps w ON w.key = m.sweep"
             : "",
      attempt ? " LEFT JOIN attempts a ON a.key = t.result_attempt" : "",
      artifact ? " LEFT JOIN artifacts f ON f.attempt = t.result_attempt" : "",
      fmt::join(where, " AND "),
      // Keep the order of recording, whichever index SQLite uses.
      member ? " ORDER BY t.key, m.sweep, m.place" : " ORDER BY t.key");
  return statement;
}

Statement configuration_of_trial() {
  Statement statement;
  std::vector<std::string> columns;
  for (const Word& word : configuration_words()) columns.push_back(expression(word, statement));
  statement.sql = fmt::format("SELECT {} FROM trials t WHERE t.key = ?{}", fmt::join(columns, ", "),
                              statement.parameters.size() + 1);
  return statement;
}

}  // namespace petlab::results::internal
