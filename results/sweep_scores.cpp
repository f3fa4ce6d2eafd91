#include "results/sweep_scores.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <unordered_map>

#include "results/connection.h"
#include "results/question_sql.h"
#include "results/schema.h"
#include "results/snapshot.h"

namespace petlab::results {
namespace {

using internal::Connection;
using internal::Query;
using Json = nlohmann::json;

// Of a trial's rows those that are looked at first: a worker ends with its test scores.
constexpr int kTail = 64;

template <typename Take>
void each_task(std::string_view tasks, Take take) {
  while (!tasks.empty()) {
    const std::size_t comma = tasks.find(',');
    take(tasks.substr(0, comma));
    if (comma == std::string_view::npos) return;
    tasks.remove_prefix(comma + 1);
  }
}

}  // namespace

namespace internal {

/// The series that are wanted, and whose they are.
class WantedSeries {
 public:
  WantedSeries(Connection& connection, const std::function<bool(const SeriesName&)>& wanted) {
    Query rows(connection,
               "SELECT key, split, task, name FROM series ORDER BY split, task, name, key");
    while (rows.step()) {
      SeriesName one{rows.integer(0), rows.text(1), rows.text(2), rows.text(3)};
      if (wanted(one)) all_.push_back(std::move(one));
    }
    std::set<std::string, std::less<>> owned;
    Query owners(connection, "SELECT DISTINCT tasks FROM trials WHERE tasks IS NOT NULL");
    while (!all_.empty() && owners.step()) {
      each_task(owners.text(0), [&](std::string_view task) { owned.emplace(task); });
    }
    for (std::size_t place = 0; place < all_.size(); ++place) {
      places_[all_[place].key] = place;
      if (!owned.contains(all_[place].task)) ownerless_.push_back(place);
      by_task_[all_[place].task].push_back(place);
    }
  }

  std::string keys() const {
    Json keys = Json::array();
    for (const SeriesName& one : all_) keys.push_back(one.key);
    return keys.dump();
  }
  const SeriesName& at(std::size_t place) const { return all_[place]; }
  std::size_t place(std::int64_t key) const { return places_.at(key); }
  /// Places of those that a trial of these tasks may report, ascending.
  const std::vector<std::size_t>& of(const std::string& tasks) {
    const auto [known, is_new] = of_tasks_.try_emplace(tasks);
    if (!is_new) return known->second;
    std::vector<std::size_t>& made = known->second;
    made = ownerless_;
    each_task(tasks, [&](std::string_view task) {
      const auto own = by_task_.find(task);
      if (own != by_task_.end()) made.insert(made.end(), own->second.begin(), own->second.end());
    });
    std::sort(made.begin(), made.end());
    made.erase(std::unique(made.begin(), made.end()), made.end());
    return made;
  }

 private:
  std::vector<SeriesName> all_;
  std::unordered_map<std::int64_t, std::size_t> places_;
  std::vector<std::size_t> ownerless_;
  std::map<std::string, std::vector<std::size_t>, std::less<>> by_task_;
  std::unordered_map<std::string, std::vector<std::size_t>> of_tasks_;
};

}  // namespace internal

namespace {

using internal::WantedSeries;

bool is_among(const std::vector<std::size_t>& sorted, std::size_t place) {
  return std::binary_search(sorted.begin(), sorted.end(), place);
}

/// What is known of a trial so far.
struct Known {
  std::int64_t key = 0;
  std::string id;
  std::optional<double> bls_bits;
  std::optional<std::int64_t> stored_bits;
  const std::vector<std::size_t>* expected = nullptr;
  std::map<std::size_t, Score> last;  // by place of the series
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

Known known_from(const Query& row, WantedSeries& series) {
  return {row.integer(0),          row.text(1), row.maybe_real(3), row.maybe_integer(4),
          &series.of(row.text(2)), {}};
}

/// Calls `begin` with the row of each trial, then `score` with each of its scores.
template <typename Begin, typename TakeScore>
void each_row(Query& rows, WantedSeries& series, Begin begin, TakeScore score) {
  std::optional<std::int64_t> trial;
  const std::vector<std::size_t>* expected = nullptr;
  while (rows.step()) {
    if (trial != rows.integer(0)) {
      trial = rows.integer(0);
      expected = &series.of(rows.text(2));
      begin();
    }
    if (rows.is_null(5)) continue;
    const std::size_t place = series.place(rows.integer(5));
    if (!is_among(*expected, place)) continue;
    score(place, Score{&series.at(place), rows.integer(6), rows.maybe_real(7)});
  }
}

void take_last(Connection& connection, const SweepQuestion& question, WantedSeries& series,
               const std::function<void(const SweepTrial&)>& take) {
  const std::string keys = series.keys();
  std::vector<Known> trials;
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
    each_row(
        rows, series, [&] { trials.push_back(known_from(rows, series)); },
        [&](std::size_t place, const Score& score) { trials.back().last[place] = score; });
  }
  std::unordered_map<std::int64_t, std::size_t> incomplete;
  Json rest = Json::array();
  for (std::size_t i = 0; i < trials.size(); ++i) {
    if (trials[i].last.size() == trials[i].expected->size()) continue;
    incomplete[trials[i].key] = i;
    rest.push_back(trials[i].key);
  }
  if (!incomplete.empty()) {
    // All of them, by attempt and as they came: the last stays.
    Query rows(connection,
               "SELECT a.trial, v.series, v.step, v.value FROM json_each(?1) j CROSS JOIN attempts "
               "a ON a.trial = j.value AND a.counts_to IS NOT NULL CROSS JOIN metric_values v ON "
               "v.attempt = a.key AND v.seq <= a.counts_to WHERE v.series IN (SELECT value FROM "
               "json_each(?2)) ORDER BY a.trial, a.number, v.seq");
    const std::string trial_keys = rest.dump();
    rows.with(std::string_view(trial_keys)).with(std::string_view(keys));
    while (rows.step()) {
      Known& trial = trials[incomplete.at(rows.integer(0))];
      const std::size_t place = series.place(rows.integer(1));
      if (!is_among(*trial.expected, place)) continue;
      trial.last[place] = {&series.at(place), rows.integer(2), rows.maybe_real(3)};
    }
  }
  std::vector<Score> scores;
  for (const Known& trial : trials) {
    scores.clear();
    for (const auto& [place, score] : trial.last) scores.push_back(score);
    take({trial.id, trial.bls_bits, trial.stored_bits, scores});
  }
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
  std::optional<Known> trial;
  std::vector<Score> scores;
  const auto end = [&] {
    if (trial) take({trial->id, trial->bls_bits, trial->stored_bits, scores});
    scores.clear();
  };
  each_row(
      rows, series,
      [&] {
        end();
        trial = known_from(rows, series);
      },
      [&](std::size_t, const Score& score) { scores.push_back(score); });
  end();
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
    if (question.steps == SweepQuestion::Steps::last) {
      take_last(connection, question, *wanted_, take);
    } else {
      take_every(connection, question, *wanted_, take);
    }
  });
}

}  // namespace petlab::results
