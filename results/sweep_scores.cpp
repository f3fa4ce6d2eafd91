#include "results/sweep_scores.h"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string_view>
#include <unordered_map>

#include "results/connection.h"
#include "results/question_sql.h"
#include "results/schema.h"
#include "results/selected_scores.h"
#include "results/snapshot.h"

namespace petlab::results {
namespace {

using internal::Connection;
using internal::Query;
using internal::SelectedScores;
using internal::WantedSeries;
using Json = nlohmann::json;

// How many of a trial's last rows are read first: a worker ends with its test scores.
constexpr int kTail = 64;

/// What is known of a trial so far.
struct Known {
  std::int64_t key = 0;
  std::string id;
  std::string tasks;
  std::optional<double> bls_bits;
  std::optional<std::int64_t> stored_bits;
  std::vector<Score> scores;
};

/// A row of a trial's values.
struct ValueRow {
  std::int64_t series = 0;
  std::int64_t step = 0;
  std::optional<double> value;
};

/// `t`: the trials of the sweep ?1, their series ?2, and where there are ids those of ?3.
std::string trials_and(Connection& connection, const std::string& values, bool some_trials) {
  std::string sql =
      "SELECT t.key, t.trial_id, t.tasks, coalesce(f.bls_bits, t.bls_bits), "
      "coalesce(f.stored_bits, t.stored_bits), v.series, v.step, v.value FROM (SELECT DISTINCT "
      "trial FROM sweep_trials WHERE sweep = (SELECT key FROM sweeps WHERE name = ?1)) m CROSS "
      "JOIN trials t ON t.key = m.trial LEFT JOIN artifacts f ON f.attempt = t.result_attempt " +
      values + " AND v.series IN (SELECT value FROM json_each(?2)) WHERE t.result_attempt IS NOT " +
      "NULL";
  if (internal::has_table(connection, "hidden_trials")) {
    sql += " AND NOT EXISTS (SELECT 1 FROM hidden_trials h WHERE h.trial = t.key)";
  }
  if (some_trials) sql += " AND t.trial_id IN (SELECT value FROM json_each(?3))";
  return sql;
}

void bind(Query& rows, const SweepQuestion& question, const std::string& keys) {
  std::vector<Value> values = {question.sweep, keys};
  if (question.trial_ids) values.emplace_back(Json(*question.trial_ids).dump());
  internal::bind_all(rows, values);
}

/// Calls `take` with each trial and its rows, in the order of the statement.
template <typename Take>
void each_trial(Query& rows, Take take) {
  std::optional<Known> trial;
  std::vector<ValueRow> values;
  while (rows.step()) {
    if (!trial || trial->key != rows.integer(0)) {
      if (trial) take(std::move(*trial), values);
      values.clear();
      trial = Known{rows.integer(0),    rows.text(1),          rows.text(2),
                    rows.maybe_real(3), rows.maybe_integer(4), {}};
    }
    if (!rows.is_null(5)) values.push_back({rows.integer(5), rows.integer(6), rows.maybe_real(7)});
  }
  if (trial) take(std::move(*trial), values);
}

/// The search after it took the rows, which are in the order in which they were reported.
SelectedScores& searched(WantedSeries& series, const Known& trial,
                         const std::vector<ValueRow>& values) {
  SelectedScores& search = series.of(trial.tasks);
  search.begin();
  for (auto row = values.rbegin(); row != values.rend() && !search.complete(); ++row) {
    search.take(row->series, row->step, row->value);
  }
  return search;
}

void give(const Known& trial, const std::function<void(const SweepTrial&)>& take) {
  take({trial.id, trial.bls_bits, trial.stored_bits, trial.scores});
}

void take_selected(Connection& connection, const SweepQuestion& question, WantedSeries& series,
                   const std::function<void(const SweepTrial&)>& take) {
  const std::string keys = series.keys();
  std::vector<Known> trials;
  std::unordered_map<std::int64_t, std::size_t> incomplete;
  Json rest = Json::array();
  {
    // The bound is looked up once a trial.
    Query rows(connection,
               trials_and(connection,
                          fmt::format("LEFT JOIN metric_values v ON v.attempt = t.result_attempt "
                                      "AND v.seq >= coalesce((SELECT seq FROM metric_values WHERE "
                                      "attempt = t.result_attempt ORDER BY seq DESC LIMIT 1 OFFSET "
                                      "{}), 0)",
                                      kTail - 1),
                          question.trial_ids.has_value()),
               0);
    bind(rows, question, keys);
    each_trial(rows, [&](Known trial, const std::vector<ValueRow>& values) {
      const SelectedScores& search = searched(series, trial, values);
      if (search.complete()) {
        trial.scores = search.scores();
      } else {
        incomplete[trial.key] = trials.size();
        rest.push_back(trial.key);
      }
      trials.push_back(std::move(trial));
    });
  }
  if (!incomplete.empty()) {
    Query rows(connection,
               "SELECT a.trial, v.series, v.step, v.value FROM json_each(?1) j CROSS JOIN attempts "
               "a ON a.trial = j.value AND a.counts_to IS NOT NULL CROSS JOIN metric_values v ON "
               "v.attempt = a.key AND v.seq <= a.counts_to WHERE v.series IN (SELECT value FROM "
               "json_each(?2)) ORDER BY a.trial, a.number DESC, v.seq DESC");
    const std::string trial_keys = rest.dump();
    rows.with(std::string_view(trial_keys)).with(std::string_view(keys));
    Known* trial = nullptr;
    SelectedScores* search = nullptr;
    while (rows.step()) {
      if (trial == nullptr || trial->key != rows.integer(0)) {
        if (trial != nullptr) trial->scores = search->scores();
        trial = &trials[incomplete.at(rows.integer(0))];
        search = &series.of(trial->tasks);
        search->begin();
      }
      if (!search->complete()) {
        search->take(rows.integer(1), rows.integer(2), rows.maybe_real(3));
      }
    }
    if (trial != nullptr) trial->scores = search->scores();
  }
  for (const Known& trial : trials) give(trial, take);
}

void take_every(Connection& connection, const SweepQuestion& question, WantedSeries& series,
                const std::function<void(const SweepTrial&)>& take) {
  const std::string keys = series.keys();
  Query rows(connection,
             trials_and(connection,
                        "LEFT JOIN attempts a ON a.trial = t.key AND a.counts_to IS NOT NULL LEFT "
                        "JOIN metric_values v ON v.attempt = a.key AND v.seq <= a.counts_to",
                        question.trial_ids.has_value()) +
                 " ORDER BY m.trial, a.number, v.seq",
             0);
  bind(rows, question, keys);
  each_trial(rows, [&](Known trial, const std::vector<ValueRow>& values) {
    const SelectedScores& search = searched(series, trial, values);
    std::map<std::int64_t, std::int64_t> selected;  // step by series
    for (const Score& score : search.scores()) selected[score.series->key] = score.step;
    for (const ValueRow& row : values) {
      if (search.wants(row.series)) {
        trial.scores.push_back({&series.at(row.series), row.step, row.value, false});
      }
    }
    // Of several reports at that step the last one counts.
    for (auto score = trial.scores.rbegin(); score != trial.scores.rend(); ++score) {
      const auto found = selected.find(score->series->key);
      if (found == selected.end() || found->second != score->step) continue;
      score->counts = true;
      selected.erase(found);
    }
    give(trial, take);
  });
}

}  // namespace

SweepScores::SweepScores(const Reader& reader, const std::function<bool(const SeriesName&)>& wanted)
    : reader_(reader) {
  Connection& connection = internal::connection_of(reader);
  internal::reading(connection,
                    [&] { wanted_ = std::make_unique<WantedSeries>(connection, wanted); });
}

SweepScores::~SweepScores() = default;

void SweepScores::each(const SweepQuestion& question,
                       const std::function<void(const SweepTrial&)>& take) {
  Connection& connection = internal::connection_of(reader_);
  internal::reading(connection, [&] {
    if (question.steps == SweepQuestion::Steps::selected) {
      take_selected(connection, question, *wanted_, take);
    } else {
      take_every(connection, question, *wanted_, take);
    }
  });
}

}  // namespace petlab::results
