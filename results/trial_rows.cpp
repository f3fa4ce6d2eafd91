#include "results/trial_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <stdexcept>
#include <utility>

#include "base/shallow_json.h"
#include "results/left_out.h"
#include "results/question_sql.h"
#include "results/schema.h"

namespace petlab::results::internal {
namespace {

std::string tasks_of(const nlohmann::json& config) {
  if (const auto one = config.find("task"); one != config.end() && one->is_string()) {
    return one->get<std::string>();
  }
  std::string joined;
  if (const auto several = config.find("tasks"); several != config.end()) {
    for (const auto& task : *several) {
      if (!task.is_string()) continue;
      if (!joined.empty()) joined += ',';
      joined += task.get<std::string>();
    }
  }
  return joined;
}

std::string module_kind_of(const nlohmann::json& config) {
  const auto module = config.find("module");
  if (module == config.end() || !module->is_object()) return {};
  const auto kind = module->find("kind");
  return kind != module->end() && kind->is_string() ? kind->get<std::string>() : std::string();
}

using LeftOut = std::vector<std::pair<std::string, Value>>;

void bind(Query& query, const nlohmann::json& config, const LeftOut& left_out,
          const FieldColumn& field) {
  if (field.column == "tasks") {
    query.text_or_null(tasks_of(config));
    return;
  }
  const nlohmann::json* value = &config;
  for (const std::string& key : field.path) {
    const auto found = value->is_object() ? value->find(key) : value->end();
    if (!value->is_object() || found == value->end()) {
      const auto known = std::find_if(left_out.begin(), left_out.end(),
                                      [&](const auto& one) { return one.first == field.column; });
      bind_all(query, {known == left_out.end() ? Value() : known->second});
      return;
    }
    value = &*found;
  }
  if (value->is_string()) {
    query.with(value->get_ref<const std::string&>());
  } else if (value->is_boolean()) {
    query.with(std::int64_t{value->get<bool>()});
  } else if (value->is_number_float() || (value->is_number() && field.type == "REAL")) {
    query.with(value->get<double>());
  } else if (value->is_number()) {
    query.with(value->get<std::int64_t>());
  } else if (value->is_null()) {
    query.null();
  } else {
    query.with(value->dump());
  }
}

}  // namespace

TrialWriter::TrialWriter() {
  std::string columns;
  std::string values;
  std::string updates;
  int next = 7;
  for (const FieldColumn& field : internal::field_columns()) {
    columns += fmt::format(", \"{}\"", field.column);
    values += fmt::format(", ?{}", next++);
    updates += fmt::format(", \"{0}\" = excluded.\"{0}\"", field.column);
  }
  insert_ = fmt::format(
      "INSERT INTO trials (trial_id, config, backbone_digest, bls_bits, stored_bits, user{}) "
      "VALUES (?1, ?2, ?3, ?4, ?5, ?6{}) ON CONFLICT (trial_id) DO UPDATE SET config = "
      "excluded.config, user = excluded.user, backbone_digest = "
      "coalesce(excluded.backbone_digest, "
      "backbone_digest), bls_bits = coalesce(excluded.bls_bits, bls_bits), stored_bits = "
      "coalesce(excluded.stored_bits, stored_bits){}",
      columns, values, updates);
}

void TrialWriter::write(Connection& connection, const TrialRow& trial) const {
  const nlohmann::json config = base::shallow_json_or_none(trial.config);
  if (!config.is_object()) {
    throw std::invalid_argument(
        fmt::format("trial {}: its configuration is no JSON object", trial.trial_id));
  }
  const auto user = config.find("user");
  Query query(connection, insert_);
  query.with(trial.trial_id)
      .with(trial.config)
      .text_or_null(trial.backbone_digest)
      .with(trial.bls_bits)
      .with(trial.stored_bits)
      .with(user == config.end() ? "{}" : user->dump());
  // Configurations of a worker's catalog leave out nothing, and their kinds are not petlab's.
  const LeftOut left_out =
      config.contains("catalog") ? LeftOut() : values_where_left_out(module_kind_of(config));
  for (const FieldColumn& field : internal::field_columns()) bind(query, config, left_out, field);
  query.run();
}

void keep_former_members(Connection& connection, std::int64_t key, const SweepRow& sweep,
                         std::span<const TrialRow> trials, double time) {
  std::set<std::pair<std::string_view, std::string_view>> members;
  std::set<std::string_view> member_trials;
  for (const SweepRow::Member& member : sweep.members) {
    members.emplace(member.trial_id, member.variant);
    member_trials.insert(member.trial_id);
  }
  Query before(connection,
               "SELECT m.trial, m.variant, m.place, t.trial_id FROM sweep_trials m JOIN trials t "
               "ON t.key = m.trial WHERE m.sweep = ?1");
  before.with(key);
  Query leave(connection,
              "INSERT OR REPLACE INTO former_sweep_trials (sweep, trial, variant, place, left_at) "
              "VALUES (?1, ?2, ?3, ?4, ?5)");
  while (before.step()) {
    const std::string variant = before.text(1);
    if (members.contains({before.text(3), variant})) continue;
    leave.with(key).with(before.integer(0)).with(variant).with(before.integer(2)).with(time).run();
    leave.again();
  }
  // From the runs folder's file, which keeps former members but not their variants.
  Query unknown(connection,
                "INSERT INTO former_sweep_trials (sweep, trial, variant, place, left_at) SELECT "
                "?1, key, '', 0, ?3 FROM trials WHERE trial_id = ?2 AND NOT EXISTS (SELECT 1 FROM "
                "former_sweep_trials WHERE sweep = ?1 AND trial = trials.key)");
  for (const TrialRow& trial : trials) {
    if (member_trials.contains(trial.trial_id)) continue;
    unknown.with(key).with(trial.trial_id).with(time).run();
    unknown.again();
  }
}

void forget_former_members(Connection& connection, std::int64_t key) {
  Query back(connection,
             "DELETE FROM former_sweep_trials WHERE sweep = ?1 AND (trial, variant) IN (SELECT "
             "trial, variant FROM sweep_trials WHERE sweep = ?1)");
  back.with(key).run();
}

std::int64_t trial_key(Connection& connection, const std::string& trial_id) {
  Query query(connection, "SELECT key FROM trials WHERE trial_id = ?1");
  if (!query.with(trial_id).step()) {
    throw std::invalid_argument(
        fmt::format("there is no trial {} in {}", trial_id, connection.file().string()));
  }
  return query.integer(0);
}

void recount(Connection& connection, std::int64_t trial) {
  Query clear(connection,
              "UPDATE attempts SET counts_to = NULL WHERE trial = ?1 AND counts_to IS NOT NULL");
  clear.with(trial).run();
  Query finished(
      connection,
      "SELECT key, number, parent, resume_seq FROM attempts WHERE trial = ?1 AND "
      "event_outcome = 'finished' AND number > coalesce((SELECT max(after_attempt) FROM "
      "retries WHERE trial = ?1 AND after_attempt < (SELECT max(number) FROM attempts "
      "WHERE trial = ?1 AND event_outcome = 'finished')), 0) AND number > coalesce((SELECT "
      "max(after_attempt) FROM renewals WHERE trial = ?1 AND discarded), 0) ORDER BY "
      "number LIMIT 1");
  if (!finished.with(trial).step()) {
    Query(connection,
          "UPDATE trials SET result_attempt = NULL WHERE key = ?1 AND result_attempt IS NOT NULL")
        .with(trial)
        .run();
    return;
  }
  std::int64_t key = finished.integer(0);
  std::int64_t number = finished.integer(1);
  std::optional<std::int64_t> parent = finished.maybe_integer(2);
  std::optional<std::int64_t> parent_counts_to = finished.maybe_integer(3);
  Query result(connection, "UPDATE trials SET result_attempt = ?2 WHERE key = ?1");
  result.with(trial).with(key).run();
  std::int64_t counts_to = std::numeric_limits<std::int64_t>::max();
  while (true) {
    Query counts(connection, "UPDATE attempts SET counts_to = ?2 WHERE key = ?1");
    counts.with(key).with(counts_to).run();
    if (!parent || !parent_counts_to || *parent >= number) return;
    Query next(
        connection,
        "SELECT key, number, parent, resume_seq FROM attempts WHERE trial = ?1 AND number = ?2");
    if (!next.with(trial).with(*parent).step()) return;
    counts_to = *parent_counts_to;
    key = next.integer(0);
    number = next.integer(1);
    parent = next.maybe_integer(2);
    parent_counts_to = next.maybe_integer(3);
  }
}

}  // namespace petlab::results::internal
