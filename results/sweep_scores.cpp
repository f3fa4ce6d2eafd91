#include "results/sweep_scores.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "results/connection.h"
#include "results/question_sql.h"
#include "results/schema.h"
#include "results/selected_values.h"
#include "results/snapshot.h"

namespace petlab::results {
namespace {

using internal::Connection;
using internal::Query;

/// The trials of the sweep ?1, their series ?2, and where there are ids those of ?3. `v` joins the
/// values, `counts` says of each whether it counts.
std::string trials_and(Connection& connection, const std::string& joined, const char* counts,
                       bool some_trials) {
  std::string sql = fmt::format(
      "SELECT t.key, t.trial_id, t.tasks, coalesce(f.bls_bits, t.bls_bits), "
      "coalesce(f.stored_bits, t.stored_bits), v.series, v.step, v.value, {} FROM (SELECT DISTINCT "
      "trial FROM sweep_trials WHERE sweep = (SELECT key FROM sweeps WHERE name = ?1)) m CROSS "
      "JOIN trials t ON t.key = m.trial LEFT JOIN artifacts f ON f.attempt = t.result_attempt {} "
      "AND v.series IN (SELECT value FROM json_each(?2))",
      counts, joined);
  sql += " WHERE t.result_attempt IS NOT NULL";
  if (internal::has_table(connection, "hidden_trials")) {
    sql += " AND NOT EXISTS (SELECT 1 FROM hidden_trials h WHERE h.trial = t.key)";
  }
  if (some_trials) sql += " AND t.trial_id IN (SELECT value FROM json_each(?3))";
  return sql;
}

}  // namespace

SweepScores::SweepScores(const Reader& reader, const std::function<bool(const SeriesName&)>& wanted)
    : reader_(reader) {
  Connection& connection = internal::connection_of(reader);
  internal::reading(
      connection, [&] { wanted_ = std::make_unique<internal::WantedSeries>(connection, wanted); });
}

SweepScores::~SweepScores() = default;

void SweepScores::each(const SweepQuestion& question,
                       const std::function<void(const SweepTrial&)>& take) {
  Connection& connection = internal::connection_of(reader_);
  internal::reading(connection, [&] {
    internal::provide_selected_values(connection);
    const bool some_trials = question.trial_ids.has_value();
    const bool every = question.steps == SweepQuestion::Steps::every;
    const std::string sql =
        every
            ? trials_and(connection,
                         "LEFT JOIN attempts a ON a.trial = t.key AND a.counts_to IS NOT NULL "
                         "LEFT JOIN metric_values v ON v.attempt = a.key AND v.seq <= a.counts_to",
                         "EXISTS (SELECT 1 FROM selected_values c WHERE c.trial = t.key AND "
                         "c.series = v.series AND c.attempt = a.key AND c.seq = v.seq)",
                         some_trials) +
                  " ORDER BY m.trial, a.number, v.seq"
            : trials_and(connection, "LEFT JOIN selected_values v ON v.trial = t.key", "1",
                         some_trials);
    Query rows(connection, sql, 0);
    std::vector<Value> values = {question.sweep, wanted_->keys()};
    if (some_trials) values.emplace_back(nlohmann::json(*question.trial_ids).dump());
    internal::bind_all(rows, values);
    std::optional<std::int64_t> key;
    std::string id;
    std::string tasks;
    std::optional<double> bls_bits;
    std::optional<std::int64_t> stored_bits;
    std::vector<Score> scores;
    const auto give = [&] {
      if (!key) return;
      if (!every) {
        std::sort(scores.begin(), scores.end(),
                  [](const Score& a, const Score& b) { return a.series < b.series; });
      }
      take({id, bls_bits, stored_bits, scores});
    };
    while (rows.step()) {
      if (key != rows.integer(0)) {
        give();
        key = rows.integer(0);
        id = rows.text(1);
        tasks = rows.text(2);
        bls_bits = rows.maybe_real(3);
        stored_bits = rows.maybe_integer(4);
        scores.clear();
      }
      if (rows.is_null(5)) continue;
      const SeriesName* const series = wanted_->find(tasks, rows.integer(5));
      if (series == nullptr) continue;
      scores.push_back({series, rows.integer(6), rows.maybe_real(7), rows.integer(8) != 0});
    }
    give();
  });
}

}  // namespace petlab::results
