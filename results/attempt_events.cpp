#include "results/attempt_events.h"

#include <SQLiteCpp/Database.h>
#include <fmt/format.h>
#include <sqlite3.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "base/invariant.h"
#include "results/connection.h"
#include "results/examples.h"
#include "results/loss_curve.h"
#include "results/provenance.h"
#include "results/snapshot.h"
#include "results/trial_rows.h"

namespace petlab::results {

using internal::Connection;
using internal::connection_of;
using internal::Query;
using internal::reading;
using internal::writing;

namespace {

// To be called after an UPDATE of the attempt that has conditions. `otherwise`: what it means that
// they did not hold.
void must_have_changed(Connection& connection, const AttemptRef& attempt, const char* otherwise) {
  PETLAB_INVARIANT(sqlite3_changes(connection.database().getHandle()) == 1,
                   fmt::format("attempt {} of {} {}", attempt.number, attempt.trial_id, otherwise));
}

}  // namespace

Series series_in(Batch& batch, std::string_view split, std::string_view task,
                 std::string_view name) {
  std::string joined;
  joined.reserve(split.size() + task.size() + name.size() + 2);
  joined.append(split).append(1, '\x1f').append(task).append(1, '\x1f').append(name);
  Connection& known_by = connection_of(batch);
  if (const auto known = known_by.series.find(joined); known != known_by.series.end()) {
    return {known->second};
  }
  return writing(batch, "record the name of a metric", [&](Connection& connection) -> Series {
    Query find(connection, "SELECT key FROM series WHERE split = ?1 AND task = ?2 AND name = ?3");
    std::int64_t key = 0;
    if (find.with(split).with(task).with(name).step()) {
      key = find.integer(0);
    } else {
      Query(connection, "INSERT INTO series (split, task, name) VALUES (?1, ?2, ?3)")
          .with(split)
          .with(task)
          .with(name)
          .run();
      key = connection.database().getLastInsertRowid();
      connection.series_changed = true;
    }
    connection.series.emplace(std::move(joined), key);
    return {key};
  });
}

void append_metrics(Batch& batch, const AttemptRef& attempt, std::span<const MetricReport> rows) {
  if (rows.empty()) return;
  writing(batch, "record metrics", [&](Connection& connection) {
    connection.rows = rows;
    Query(connection,
          "INSERT INTO metric_values (attempt, seq, step, series, value) SELECT ?1, seq, step, "
          "series, value FROM batch_rows")
        .with(attempt.key)
        .run();
    // If the attempt already counts, its events are being read again. Fires the trigger that
    // selects values.
    Query(connection,
          "UPDATE attempts SET counts_to = counts_to WHERE key = ?1 AND counts_to IS NOT NULL")
        .with(attempt.key)
        .run();
  });
}

void record_started(Batch& batch, const AttemptRef& attempt, const protocol::Started& started,
                    double time) {
  writing(batch, "record that an attempt started", [&](Connection& connection) {
    Query(connection,
          "UPDATE attempts SET started_at = ?2, worker = ?3, worker_version = ?4, worker_pid = ?5, "
          "numerics = ?6, backbone_digest = ?7, data_digests = ?8 WHERE key = ?1")
        .with(attempt.key)
        .with(time)
        .text_or_null(started.worker)
        .text_or_null(started.version)
        .with(started.pid)
        .text_or_null(started.numerics)
        .text_or_null(started.backbone_digest)
        .with(nlohmann::json(started.data_digests).dump())
        .run();
    internal::record_provenance(connection, attempt.key, internal::ProvenanceSource::worker,
                                started.provenance);
  });
}

void record_progress(Batch& batch, const AttemptRef& attempt, const protocol::Progress& progress,
                     double time, std::span<const LossReport> losses) {
  writing(batch, "record progress", [&](Connection& connection) {
    internal::append_losses(connection, attempt.key, losses);
    Query(connection,
          "INSERT INTO progress (attempt, step, of, loss, time) VALUES (?1, ?2, ?3, ?4, ?5) ON "
          "CONFLICT (attempt) DO UPDATE SET step = ?2, of = ?3, loss = ?4, time = ?5")
        .with(attempt.key)
        .with(progress.step)
        .with(progress.of)
        .with(progress.loss)
        .with(time)
        .run();
    if (!progress.device_memory_mib) return;
    Query(connection,
          "UPDATE attempts SET device_memory_mib = max(coalesce(device_memory_mib, 0), ?2) WHERE "
          "key = ?1")
        .with(attempt.key)
        .with(progress.device_memory_mib)
        .run();
  });
}

void record_checkpoint(Batch& batch, const AttemptRef& attempt, const CheckpointAt& checkpoint) {
  writing(batch, "record a checkpoint", [&](Connection& connection) {
    Query(connection,
          "UPDATE attempts SET checkpoint_step = ?2, checkpoint_seq = ?3, checkpoint_path = ?4 "
          "WHERE key = ?1")
        .with(attempt.key)
        .with(checkpoint.step)
        .with(checkpoint.seq)
        .with(checkpoint.path)
        .run();
  });
}

void record_finished(Batch& batch, const AttemptRef& attempt, const protocol::Finished& finished,
                     double time) {
  writing(batch, "record that an attempt finished", [&](Connection& connection) {
    Query(connection,
          "UPDATE attempts SET event_outcome = 'finished', event_at = ?2, finished_step = ?3, "
          "peak_memory_mib = ?4, train_seconds = ?5, device_memory_mib = "
          "coalesce(max(coalesce(device_memory_mib, 0), ?6), device_memory_mib) WHERE key = ?1 AND "
          "event_outcome IS NULL")
        .with(attempt.key)
        .with(time)
        .with(finished.step)
        .with(finished.peak_memory_mib)
        .with(finished.train_seconds)
        .with(finished.device_memory_mib)
        .run();
    must_have_changed(connection, attempt, "ends a second time");
    if (!finished.artifact.empty() || finished.bls_bits || finished.stored_bits) {
      Query(
          connection,
          "INSERT OR REPLACE INTO artifacts (attempt, path, bls_bits, stored_bits) VALUES (?1, ?2, "
          "?3, ?4)")
          .with(attempt.key)
          .text_or_null(finished.artifact)
          .with(finished.bls_bits)
          .with(finished.stored_bits)
          .run();
    }
    internal::record_examples(connection, attempt.key, finished.examples);
    internal::record_provenance(connection, attempt.key, internal::ProvenanceSource::worker,
                                finished.provenance);
    Query trial(connection, "SELECT trial FROM attempts WHERE key = ?1");
    if (trial.with(attempt.key).step()) internal::recount(connection, trial.integer(0));
  });
}

void record_failed(Batch& batch, const AttemptRef& attempt, const protocol::Failed& failed,
                   std::optional<double> time) {
  writing(batch, "record that an attempt failed", [&](Connection& connection) {
    Query(connection,
          "UPDATE attempts SET event_outcome = 'failed', event_kind = ?2, event_reason = ?3, "
          "event_at = ?4 WHERE key = ?1 AND event_outcome IS NULL")
        .with(attempt.key)
        .with(failed.kind)
        .with(failed.reason)
        .with(time)
        .run();
    must_have_changed(connection, attempt, "ends a second time");
  });
}

void record_note(Batch& batch, const AttemptRef& attempt, std::string_view note) {
  writing(batch, "record a note", [&](Connection& connection) {
    Query(connection, "UPDATE attempts SET note = ?2 WHERE key = ?1")
        .with(attempt.key)
        .with(note)
        .run();
  });
}

void set_cursor(Batch& batch, const AttemptRef& attempt, const Cursor& cursor) {
  writing(batch, "record how far events were read", [&](Connection& connection) {
    Query(connection,
          "UPDATE attempts SET events_offset = ?2, events_next_seq = ?3, events_lines = ?4, "
          "events_closed = ?5 WHERE key = ?1 AND events_offset <= ?2 AND events_next_seq <= ?3 AND "
          "events_closed = 0")
        .with(attempt.key)
        .with(cursor.offset)
        .with(cursor.next_seq)
        .with(cursor.lines)
        .with(std::int64_t{cursor.broken   ? 2
                           : cursor.closed ? 1
                                           : 0})
        .run();
    must_have_changed(connection, attempt, "is read backwards, or after its end");
  });
}

void forget_events(Batch& batch, const AttemptRef& attempt) {
  writing(batch, "remove what was read of an attempt's events", [&](Connection& connection) {
    for (const char* sql :
         {"DELETE FROM metric_values WHERE attempt = ?1", "DELETE FROM progress WHERE attempt = ?1",
          "DELETE FROM loss_points WHERE attempt = ?1", "DELETE FROM artifacts WHERE attempt = ?1",
          "DELETE FROM examples WHERE attempt = ?1",
          "UPDATE provenance SET worker = NULL WHERE attempt = ?1",
          "UPDATE attempts SET started_at = NULL, worker = NULL, worker_version = NULL, worker_pid "
          "= NULL, numerics = NULL, backbone_digest = NULL, data_digests = NULL, checkpoint_step = "
          "NULL, checkpoint_seq = NULL, checkpoint_path = NULL, event_outcome = NULL, event_kind = "
          "NULL, event_reason = NULL, event_at = NULL, finished_step = NULL, peak_memory_mib = "
          "NULL, device_memory_mib = NULL, train_seconds = NULL, note = NULL, events_offset = 0, "
          "events_next_seq = 0, events_lines = 0, events_closed = 0 WHERE key = ?1"}) {
      Query(connection, sql).with(attempt.key).run();
    }
    Query trial(connection, "SELECT trial FROM attempts WHERE key = ?1");
    if (trial.with(attempt.key).step()) internal::recount(connection, trial.integer(0));
  });
}

Cursor cursor_of(const Reader& reader, const AttemptRef& attempt) {
  Connection& connection = connection_of(reader);
  return reading(connection, [&] {
    Query row(connection,
              "SELECT events_offset, events_next_seq, events_lines, events_closed FROM attempts "
              "WHERE key = ?1");
    if (!row.with(attempt.key).step()) return Cursor{.closed = true, .broken = true};
    return Cursor{row.integer(0), row.integer(1), row.integer(2), row.integer(3) != 0,
                  row.integer(3) == 2};
  });
}

std::vector<ProgressFacts> open_progress(const Reader& reader) {
  Connection& connection = connection_of(reader);
  return reading(connection, [&] {
    std::vector<ProgressFacts> all;
    Query rows(connection,
               "SELECT a.key, t.trial_id, a.number, p.step, p.of, p.loss, p.time FROM attempts a "
               "CROSS JOIN progress p ON p.attempt = a.key CROSS JOIN trials t ON t.key = a.trial "
               "WHERE a.outcome = 'open' ORDER BY a.key");
    while (rows.step()) {
      all.push_back({{rows.integer(0), rows.text(1), rows.integer(2)},
                     rows.integer(3),
                     rows.integer(4),
                     rows.maybe_real(5),
                     rows.real(6)});
    }
    return all;
  });
}

std::vector<protocol::Metric> validation_metrics(const Reader& reader, const AttemptRef& attempt,
                                                 std::int64_t& from_seq) {
  Connection& connection = connection_of(reader);
  return reading(connection, [&] {
    std::vector<protocol::Metric> all;
    Query rows(
        connection,
        "SELECT v.step, s.task, s.name, v.value, v.seq FROM metric_values v JOIN series s ON "
        "s.key = v.series WHERE v.attempt = ?1 AND v.seq >= ?2 AND s.split = 'validation' "
        "ORDER BY v.seq");
    rows.with(attempt.key).with(from_seq);
    while (rows.step()) {
      from_seq = rows.integer(4) + 1;
      all.push_back(
          {rows.integer(0), "validation", rows.text(1), rows.text(2), rows.maybe_real(3)});
    }
    return all;
  });
}

void record_judged(Batch& batch, const AttemptRef& attempt, std::int64_t step) {
  writing(batch, "record validations", [&](Connection& connection) {
    Query(connection,
          "INSERT INTO judged_validations VALUES (?1, ?2) ON CONFLICT (attempt) DO UPDATE SET step "
          "= max(step, ?2)")
        .with(attempt.key)
        .with(step)
        .run();
  });
}

void each_validation(const Reader& reader, const std::string& sweep,
                     const std::function<void(const Validation&)>& take) {
  Connection& connection = connection_of(reader);
  reading(connection, [&] {
    Query rows(connection,
               "SELECT t.trial_id, a.key, a.number, v.step, s.task, s.name, v.value, v.step <= "
               "coalesce(j.step, -1), coalesce(a.resume_step, 0) FROM (SELECT DISTINCT trial FROM "
               "sweep_trials WHERE sweep = (SELECT key FROM sweeps WHERE name = ?1)) m "
               "CROSS JOIN trials t ON t.key = m.trial "
               "CROSS JOIN attempts a ON a.trial = t.key AND a.number > coalesce((SELECT "
               "max(after_attempt) FROM renewals WHERE trial = t.key), 0) CROSS JOIN metric_values "
               "v ON v.attempt = a.key CROSS JOIN series s ON s.key = v.series LEFT JOIN "
               "judged_validations j ON j.attempt = a.key WHERE s.split = 'validation' ORDER BY "
               "t.key, a.number, v.seq");
    rows.with(sweep);
    while (rows.step()) {
      const std::string trial_id = rows.text(0);
      take({trial_id,
            {rows.integer(1), trial_id, rows.integer(2)},
            {rows.integer(3), "validation", rows.text(4), rows.text(5), rows.maybe_real(6)},
            rows.integer(7) != 0,
            rows.integer(8)});
    }
  });
}

}  // namespace petlab::results
