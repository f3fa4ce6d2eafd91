#include "results/decisions.h"

#include "results/connection.h"
#include "results/snapshot.h"
#include "results/trial_rows.h"

namespace petlab::results {

using internal::Connection;
using internal::connection_of;
using internal::Query;
using internal::reading;
using internal::trial_key;
using internal::writing;

namespace {

void insert_retry(Connection& connection, std::int64_t trial, std::int64_t after_attempt) {
  Query(connection, "UPDATE trials SET retried_after = max(retried_after, ?2) WHERE key = ?1")
      .with(trial)
      .with(after_attempt)
      .run();
  Query(connection, "INSERT OR IGNORE INTO retries (trial, after_attempt) VALUES (?1, ?2)")
      .with(trial)
      .with(after_attempt)
      .run();
  internal::recount(connection, trial);
}

}  // namespace

void set_cancelled(Batch& batch, const std::string& trial_id, bool cancelled) {
  writing(batch, "record a decision", [&](Connection& connection) {
    const std::int64_t trial = trial_key(connection, trial_id);
    Query(connection, "UPDATE trials SET cancelled = ?2 WHERE key = ?1")
        .with(trial)
        .with(std::int64_t{cancelled})
        .run();
    if (cancelled) Query(connection, "DELETE FROM early_stops WHERE trial = ?1").with(trial).run();
  });
}

// A petlab that has no early stops sees a cancelled trial.
void stop_early(Batch& batch, const std::string& trial_id, const EarlyStop& stop) {
  writing(batch, "record a decision", [&](Connection& connection) {
    const std::int64_t trial = trial_key(connection, trial_id);
    Query(
        connection,
        "INSERT INTO early_stops (trial, after_attempt, after_step, why, decided_at) SELECT key, "
        "?2, ?3, ?4, ?5 FROM trials WHERE key = ?1 AND NOT cancelled ON CONFLICT (trial) DO UPDATE "
        "SET after_attempt = ?2, after_step = ?3, why = ?4, decided_at = ?5")
        .with(trial)
        .with(stop.after_attempt)
        .with(stop.after_step)
        .with(stop.why)
        .with(stop.time)
        .run();
    Query(connection, "UPDATE trials SET cancelled = 1 WHERE key = ?1 AND NOT cancelled")
        .with(trial)
        .run();
  });
}

void allow_retry(Batch& batch, const std::string& trial_id, std::int64_t after_attempt) {
  writing(batch, "record a decision", [&](Connection& connection) {
    insert_retry(connection, trial_key(connection, trial_id), after_attempt);
  });
}

void renew(Batch& batch, const std::string& trial_id, const Renewal& renewal) {
  writing(batch, "record a decision", [&](Connection& connection) {
    const std::int64_t trial = trial_key(connection, trial_id);
    Query(
        connection,
        "INSERT OR IGNORE INTO renewals (trial, after_attempt, discarded, why, decided_at) VALUES "
        "(?1, ?2, ?3, ?4, ?5)")
        .with(trial)
        .with(renewal.after_attempt)
        .with(std::int64_t{renewal.discarded})
        .text_or_null(renewal.why)
        .with(renewal.time)
        .run();
    insert_retry(connection, trial, renewal.after_attempt);
  });
}

void set_hidden(Batch& batch, const std::string& trial_id, const std::optional<Hiding>& hiding) {
  writing(batch, "record a decision", [&](Connection& connection) {
    const std::int64_t trial = trial_key(connection, trial_id);
    if (!hiding) {
      Query(connection, "DELETE FROM hidden_trials WHERE trial = ?1").with(trial).run();
      return;
    }
    Query(connection,
          "INSERT INTO hidden_trials (trial, why, decided_at) VALUES (?1, ?2, ?3) ON CONFLICT "
          "(trial) DO UPDATE SET why = ?2, decided_at = ?3")
        .with(trial)
        .text_or_null(hiding->why)
        .with(hiding->time)
        .run();
  });
}

std::vector<Decided> decided(const Reader& reader) {
  Connection& connection = connection_of(reader);
  return reading(connection, [&] {
    std::vector<Decided> all;
    // Every renewal also allows a retry, so this finds renewed trials as well.
    Query rows(
        connection,
        "SELECT trial_id, cancelled, retried_after, coalesce((SELECT max(after_attempt) FROM "
        "renewals WHERE trial = t.key), 0) FROM trials t WHERE cancelled != 0 OR "
        "retried_after != 0");
    while (rows.step()) {
      all.push_back({rows.text(0), rows.integer(1) != 0, rows.integer(2), rows.integer(3)});
    }
    return all;
  });
}

std::vector<std::int64_t> retries_of(const Reader& reader, const std::string& trial_id) {
  Connection& connection = connection_of(reader);
  return reading(connection, [&] {
    std::vector<std::int64_t> all;
    Query rows(connection,
               "SELECT after_attempt FROM retries r JOIN trials t ON t.key = r.trial WHERE "
               "t.trial_id = ?1 ORDER BY after_attempt");
    rows.with(trial_id);
    while (rows.step()) all.push_back(rows.integer(0));
    return all;
  });
}

std::map<std::string, EarlyStop> early_stops(const Reader& reader) {
  Connection& connection = connection_of(reader);
  return reading(connection, [&] {
    std::map<std::string, EarlyStop> all;
    Query rows(connection,
               "SELECT trial_id, after_attempt, after_step, why, decided_at FROM early_stops JOIN "
               "trials t ON t.key = trial");
    while (rows.step()) {
      all[rows.text(0)] = {rows.integer(1), rows.integer(2), rows.text(3), rows.real(4)};
    }
    return all;
  });
}

ResultDecisions result_decisions(const Reader& reader, const std::string& trial_id) {
  Connection& connection = connection_of(reader);
  return reading(connection, [&] {
    ResultDecisions decisions;
    Query renewals(
        connection,
        "SELECT after_attempt, discarded, why, decided_at FROM renewals JOIN trials t ON "
        "t.key = trial WHERE trial_id = ?1 ORDER BY after_attempt, discarded");
    renewals.with(trial_id);
    while (renewals.step()) {
      decisions.renewals.push_back(
          {renewals.integer(0), renewals.integer(1) != 0, renewals.text(2), renewals.real(3)});
    }
    Query hidden(connection,
                 "SELECT why, decided_at FROM hidden_trials JOIN trials t ON t.key = trial WHERE "
                 "trial_id = ?1");
    if (hidden.with(trial_id).step()) decisions.hidden = Hiding{hidden.text(0), hidden.real(1)};
    return decisions;
  });
}

}  // namespace petlab::results
