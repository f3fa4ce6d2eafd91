#include "results/schema.h"

#include <SQLiteCpp/Database.h>
#include <SQLiteCpp/Exception.h>
#include <fmt/format.h>
#include <sqlite3.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/files.h"
#include "results/backup.h"
#include "results/connection.h"
#include "results/examples.h"
#include "results/left_out.h"
#include "results/made_file.h"
#include "results/remarks.h"
#include "results/selected_values.h"
#include "sweeps/fields.h"

namespace petlab::results::internal {
namespace {

// Keys are short integers so that a metric's row is small; people and reports use the views, which
// say trial_id, attempt (its number) and names. docs/reference/database.md describes each column.
constexpr const char* kTables = R"sql(
CREATE TABLE sweeps (
  key INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, about TEXT, file TEXT, digest TEXT,
  recorded_at REAL, overrides TEXT);
CREATE TABLE trials (
  key INTEGER PRIMARY KEY, trial_id TEXT NOT NULL UNIQUE, config TEXT NOT NULL,
  backbone_digest TEXT, bls_bits REAL, stored_bits INTEGER,
  cancelled INTEGER NOT NULL DEFAULT 0, retried_after INTEGER NOT NULL DEFAULT 0,
  result_attempt INTEGER REFERENCES attempts, user TEXT NOT NULL DEFAULT '{}');
CREATE TABLE sweep_trials (
  sweep INTEGER NOT NULL REFERENCES sweeps, trial INTEGER NOT NULL REFERENCES trials,
  variant TEXT NOT NULL, place INTEGER NOT NULL,
  PRIMARY KEY (sweep, trial, variant)) WITHOUT ROWID;
CREATE INDEX sweep_trials_by_trial ON sweep_trials (trial);
CREATE TABLE attempts (
  key INTEGER PRIMARY KEY, trial INTEGER NOT NULL REFERENCES trials, number INTEGER NOT NULL,
  sweep TEXT, owner TEXT, launcher TEXT, "commit" TEXT, begun_at REAL,
  parent INTEGER, resume_step INTEGER, resume_seq INTEGER, resume_checkpoint TEXT,
  host TEXT, boot_id TEXT, pid_namespace TEXT, device TEXT,
  pid INTEGER, pid_start INTEGER, job TEXT, launched_at REAL,
  started_at REAL, worker TEXT, worker_version TEXT, worker_pid INTEGER, numerics TEXT,
  backbone_digest TEXT, data_digests TEXT,
  checkpoint_step INTEGER, checkpoint_seq INTEGER, checkpoint_path TEXT,
  event_outcome TEXT, event_kind TEXT, event_reason TEXT, event_at REAL, finished_step INTEGER,
  peak_memory_mib REAL, device_memory_mib REAL, train_seconds REAL, note TEXT,
  ending_outcome TEXT, ending_reason TEXT, exit_code INTEGER, signal INTEGER, log_tail TEXT,
  ending_at REAL,
  events_offset INTEGER NOT NULL DEFAULT 0, events_next_seq INTEGER NOT NULL DEFAULT 0,
  events_lines INTEGER NOT NULL DEFAULT 0, events_closed INTEGER NOT NULL DEFAULT 0,
  counts_to INTEGER, retries INTEGER,
  outcome TEXT AS (coalesce(event_outcome, ending_outcome, 'open')) VIRTUAL,
  reason TEXT AS (coalesce(event_reason, ending_reason)) VIRTUAL,
  ended_at REAL AS (coalesce(event_at, ending_at)) VIRTUAL,
  UNIQUE (trial, number));
CREATE INDEX attempts_open ON attempts (outcome) WHERE outcome = 'open';
CREATE TABLE progress (
  attempt INTEGER PRIMARY KEY REFERENCES attempts, step INTEGER NOT NULL, of INTEGER NOT NULL,
  loss REAL, time REAL NOT NULL);
CREATE TABLE artifacts (
  attempt INTEGER PRIMARY KEY REFERENCES attempts, path TEXT, bls_bits REAL, stored_bits INTEGER);
CREATE TABLE series (
  key INTEGER PRIMARY KEY, split TEXT NOT NULL, task TEXT NOT NULL, name TEXT NOT NULL,
  UNIQUE (split, task, name));
CREATE TABLE metric_values (
  attempt INTEGER NOT NULL REFERENCES attempts, seq INTEGER NOT NULL, step INTEGER NOT NULL,
  series INTEGER NOT NULL REFERENCES series, value REAL,
  PRIMARY KEY (attempt, seq)) WITHOUT ROWID;
)sql";

// Also for a database of an earlier state of this version. Triggers count, so that nothing that
// writes a trial's attempts can leave it out, an earlier petlab at the same database included.
constexpr const char* kAddedLater = R"sql(
CREATE INDEX IF NOT EXISTS trials_decided ON trials (key)
  WHERE cancelled != 0 OR retried_after != 0;
CREATE TABLE IF NOT EXISTS retries (
  trial INTEGER NOT NULL REFERENCES trials, after_attempt INTEGER NOT NULL,
  PRIMARY KEY (trial, after_attempt)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS provenance_texts (key INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE);
CREATE TABLE IF NOT EXISTS provenance (
  attempt INTEGER PRIMARY KEY REFERENCES attempts, petlab INTEGER REFERENCES provenance_texts,
  worker INTEGER REFERENCES provenance_texts);
CREATE TABLE IF NOT EXISTS sweep_texts (digest TEXT PRIMARY KEY, text TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS renewals (
  trial INTEGER NOT NULL REFERENCES trials, after_attempt INTEGER NOT NULL,
  discarded INTEGER NOT NULL, why TEXT, decided_at REAL,
  PRIMARY KEY (trial, after_attempt, discarded)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS hidden_trials (
  trial INTEGER PRIMARY KEY REFERENCES trials, why TEXT, decided_at REAL);
CREATE TABLE IF NOT EXISTS loss_points (
  attempt INTEGER NOT NULL REFERENCES attempts, place INTEGER NOT NULL, seq INTEGER NOT NULL,
  step INTEGER NOT NULL, steps INTEGER NOT NULL, reports INTEGER NOT NULL, loss REAL,
  PRIMARY KEY (attempt, place)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS former_sweep_trials (
  sweep INTEGER NOT NULL REFERENCES sweeps, trial INTEGER NOT NULL REFERENCES trials,
  variant TEXT NOT NULL, place INTEGER NOT NULL, left_at REAL NOT NULL,
  PRIMARY KEY (sweep, trial, variant)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS settings (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS trial_changes (
  trial INTEGER PRIMARY KEY REFERENCES trials, changes INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS forgotten_attempts (
  key INTEGER PRIMARY KEY, trial INTEGER NOT NULL REFERENCES trials, number INTEGER NOT NULL);
CREATE INDEX IF NOT EXISTS forgotten_attempts_by_trial ON forgotten_attempts (trial, number);
CREATE TRIGGER IF NOT EXISTS attempt_made AFTER INSERT ON attempts BEGIN
  INSERT INTO trial_changes VALUES (NEW.trial, 1)
    ON CONFLICT (trial) DO UPDATE SET changes = changes + 1;
END;
CREATE TRIGGER IF NOT EXISTS attempt_over AFTER UPDATE OF event_outcome, ending_outcome ON attempts
BEGIN
  INSERT INTO trial_changes VALUES (NEW.trial, 1)
    ON CONFLICT (trial) DO UPDATE SET changes = changes + 1;
END;
CREATE TRIGGER IF NOT EXISTS attempt_forgotten AFTER DELETE ON attempts BEGIN
  INSERT INTO trial_changes VALUES (OLD.trial, 1)
    ON CONFLICT (trial) DO UPDATE SET changes = changes + 1;
  INSERT INTO forgotten_attempts VALUES (OLD.key, OLD.trial, OLD.number);
END;
CREATE TRIGGER IF NOT EXISTS trial_decided AFTER UPDATE OF cancelled, retried_after ON trials
WHEN OLD.cancelled IS NOT NEW.cancelled OR OLD.retried_after IS NOT NEW.retried_after BEGIN
  INSERT INTO trial_changes VALUES (NEW.key, 1)
    ON CONFLICT (trial) DO UPDATE SET changes = changes + 1;
END;
CREATE TRIGGER IF NOT EXISTS trial_renewed AFTER INSERT ON renewals BEGIN
  INSERT INTO trial_changes VALUES (NEW.trial, 1)
    ON CONFLICT (trial) DO UPDATE SET changes = changes + 1;
END;
)sql";

std::string quoted(const std::string& identifier) { return '"' + identifier + '"'; }

// With a slash at its end; relative to the database's folder where the runs folder lies below that.
// NULL where the database knows of no runs folder.
constexpr const char* kTrialFolder =
    "(SELECT value FROM settings WHERE name = 'runs') || '/' || t.trial_id || '/'";

/// What is asked for most as columns; the rest is in the two objects.
std::string provenance_view() {
  std::string columns;
  for (const char* column : {"commit", "clean", "compiler", "flags", "sweep_digest", "overrides"}) {
    columns += fmt::format(", json_extract(p.text, '$.{}') AS {}", column, quoted(column));
  }
  for (const char* column : {"libtorch", "commit", "clean", "compiler", "flags"}) {
    const bool own = std::string_view(column) == "libtorch";
    columns +=
        fmt::format(", json_extract(q.text, '$.{0}') AS {1}{0}", column, own ? "" : "worker_");
  }
  for (const char* column : {"processor", "kernel", "gpu", "gpu_driver"}) {
    columns += fmt::format(
        ", coalesce(json_extract(q.text, '$.{0}'), json_extract(p.text, '$.{0}')) AS {0}", column);
  }
  return fmt::format(
      "CREATE VIEW attempt_provenance AS SELECT t.trial_id, a.number AS attempt, a.sweep, a.host, "
      "a.device, a.launcher, a.worker, a.worker_version{}, a.backbone_digest, a.data_digests, "
      "a.numerics, p.text AS petlab_said, q.text AS worker_said, x.text AS examples FROM trials t "
      "CROSS JOIN attempts a ON a.trial = t.key LEFT JOIN provenance v ON v.attempt = a.key LEFT "
      "JOIN provenance_texts p ON p.key = v.petlab LEFT JOIN provenance_texts q ON q.key = "
      "v.worker LEFT JOIN examples e ON e.attempt = a.key LEFT JOIN example_texts x ON x.key = "
      "e.text",
      columns);
}

/// CROSS JOIN fixes the order: from the few trials to their many values, never the other way.
std::vector<std::string> views() {
  std::string columns;
  for (const FieldColumn& field : field_columns())
    columns += fmt::format(", t.{}", quoted(field.column));
  const std::string selected = fmt::format(
      "t.trial_id, a.number AS attempt, v.seq, v.step, s.split, s.task, s.name, v.value{}, t.user, "
      "coalesce(f.bls_bits, t.bls_bits) AS bls_bits, coalesce(f.stored_bits, t.stored_bits) AS "
      "stored_bits, a.numerics, a.data_digests, {} || a.number AS folder, {} || (SELECT number "
      "FROM attempts WHERE key = t.result_attempt) || '/' || f.path AS artifact, {} AS "
      "selected_step, (SELECT train_seconds FROM attempts WHERE key = t.result_attempt) AS "
      "train_seconds, (SELECT group_concat(tag) FROM ({} ORDER BY 1)) AS tags",
      columns, kTrialFolder, kTrialFolder, kSelectedStep, kTagsOfTrial);
  const std::string artifact = "LEFT JOIN artifacts f ON f.attempt = t.result_attempt ";
  const std::string visible =
      " CROSS JOIN series s ON s.key = v.series WHERE NOT EXISTS (SELECT 1 FROM hidden_trials h "
      "WHERE h.trial = t.key)";
  const std::string every = artifact +
                            "CROSS JOIN attempts a ON a.trial = t.key AND a.counts_to IS NOT NULL "
                            "CROSS JOIN metric_values v ON v.attempt = a.key AND v.seq <= "
                            "a.counts_to" +
                            visible;
  const std::string counting = artifact +
                               "CROSS JOIN selected_values v ON v.trial = t.key CROSS JOIN "
                               "attempts a ON a.key = v.attempt" +
                               visible + " AND " + kTaskBelongs;
  const auto members_view = [&](const char* view, const char* members, const std::string& joined) {
    return fmt::format(
        "CREATE VIEW {} AS SELECT w.name AS sweep, nullif(m.variant, '') AS variant, {} FROM "
        "sweeps w CROSS JOIN {} m ON m.sweep = w.key CROSS JOIN trials t ON t.key = m.trial {}",
        view, selected, members, joined);
  };
  return {
      "DROP VIEW IF EXISTS metrics",
      "DROP VIEW IF EXISTS results",
      "DROP VIEW IF EXISTS sweep_results",
      "DROP VIEW IF EXISTS former_sweep_results",
      "DROP VIEW IF EXISTS scores",
      "DROP VIEW IF EXISTS sweep_scores",
      "DROP VIEW IF EXISTS counted_values",
      "DROP VIEW IF EXISTS attempt_provenance",
      "DROP VIEW IF EXISTS attempt_examples",
      "CREATE VIEW metrics AS SELECT t.trial_id, a.number AS attempt, v.seq, v.step, s.split, "
      "s.task, s.name, v.value FROM trials t CROSS JOIN attempts a ON a.trial = t.key "
      "CROSS JOIN metric_values v ON v.attempt = a.key CROSS JOIN series s ON s.key = v.series",
      fmt::format("CREATE VIEW results AS SELECT {} FROM trials t {}", selected, every),
      members_view("sweep_results", "sweep_trials", every),
      members_view("former_sweep_results", "former_sweep_trials", every),
      fmt::format("CREATE VIEW scores AS SELECT {} FROM trials t {}", selected, counting),
      members_view("sweep_scores", "sweep_trials", counting),
      kCountedView,
      provenance_view(),
      kExamplesView,
  };
}

std::vector<FieldColumn> collect_fields() {
  std::vector<FieldColumn> found = {{"tasks", {"tasks"}, "TEXT"}};
  found.resize(sweeps::fields().size() + 1);
  for (const sweeps::Field& row : sweeps::fields()) {
    FieldColumn& field = found.at(static_cast<std::size_t>(row.place));
    field.column = row.column;
    field.type = sweeps::sql_type(row.type);
    const std::size_t dot = row.name.find('.');
    if (dot != std::string_view::npos) field.path.emplace_back(row.name.substr(0, dot));
    field.path.emplace_back(row.name.substr(dot == std::string_view::npos ? 0 : dot + 1));
  }
  return found;
}

}  // namespace

const std::vector<FieldColumn>& field_columns() {
  static const std::vector<FieldColumn> all = collect_fields();
  return all;
}

bool create_database(const std::filesystem::path& file, bool rollback_journal) {
  const std::filesystem::path folder = base::folder_of(file);
  if (!std::filesystem::is_directory(folder)) {
    throw Error(
        fmt::format("{}: cannot make it: there is no folder {}", file.string(), folder.string()));
  }
  if (access(folder.c_str(), W_OK) != 0) {
    throw Error(fmt::format(
        "{}: cannot make it: folder {} cannot be written ({}); make it writable or name "
        "another database with --db",
        file.string(), folder.string(), std::strerror(errno)));
  }
  MadeFile made(file);
  try {
    SQLite::Database database(made.name().string(), SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE);
    database.exec("PRAGMA page_size = 8192; PRAGMA synchronous = FULL");
    database.exec("BEGIN IMMEDIATE");
    database.exec(fmt::format("PRAGMA application_id = {}; PRAGMA user_version = {}",
                              kApplicationId, kSchemaVersion));
    database.exec(kTables);
    database.exec(kAddedLater);
    database.exec(kRemarkTables);
    database.exec(kExampleTables);
    database.exec(kSelectedTables);
    for (const FieldColumn& field : field_columns()) {
      database.exec(
          fmt::format("ALTER TABLE trials ADD COLUMN {} {}", quoted(field.column), field.type));
    }
    database.exec(note_filled());
    database.exec(kNoteSelected);
    for (const std::string& view : views()) database.exec(view);
    database.exec("COMMIT");
    // Last: all is in the file then. What a log beside it held would be brought in by the closing,
    // which tells nobody where that fails.
    if (!rollback_journal) database.exec("PRAGMA journal_mode = WAL");
  } catch (const SQLite::Exception& error) {
    const int code = error.getErrorCode();
    throw Error(fmt::format("{}: cannot make it: {}", file.string(),
                            code == SQLITE_FULL || code == SQLITE_IOERR
                                ? "the disk is full or cannot be written; free some space and run "
                                  "the same command again"
                                : error.what()));
  }
  return made.keep();
}

void check_version(Connection& connection) {
  const std::string file = connection.file().string();
  std::error_code ignored;
  if (std::filesystem::file_size(connection.file(), ignored) == 0) {
    throw Error(fmt::format(
        "{}: the file is empty, no database; delete it or name another with --db", file));
  }
  std::int64_t application = 0;
  std::int64_t version = 0;
  connection.guard("read it", [&] {
    Query id(connection, "PRAGMA application_id");
    id.step();
    application = id.integer(0);
    Query number(connection, "PRAGMA user_version");
    number.step();
    version = number.integer(0);
  });
  if (application != kApplicationId) {
    throw Error(
        fmt::format("{}: it is a database of another program, not of petlab; name another "
                    "file with --db",
                    file));
  }
  if (version > kSchemaVersion) {
    throw Error(
        fmt::format("{}: the database has version {}, this petlab knows up to {}; use a newer "
                    "petlab, or name another file with --db",
                    file, version, kSchemaVersion));
  }
  if (version < kSchemaVersion) {
    throw Error(
        fmt::format("{}: the database has version {}, this petlab needs {}; move it away and "
                    "make it anew from the run directories: petlab db rebuild",
                    file, version, kSchemaVersion));
  }
}

void use_journal(Connection& connection, bool rollback) {
  connection.guard("choose its journal", [&] {
    std::string mode;
    {
      Query now(connection, "PRAGMA journal_mode");
      now.step();
      mode = now.text(0);
    }
    if ((mode == "wal") != rollback) return;
    Query change(connection,
                 rollback ? "PRAGMA journal_mode = DELETE" : "PRAGMA journal_mode = WAL");
    change.step();
  });
}

bool has_column(Connection& connection, std::string_view table, std::string_view name) {
  Query column(connection, "SELECT 1 FROM pragma_table_info(?1) WHERE name = ?2");
  return column.with(table).with(name).step();
}

bool has_column_of_attempts(Connection& connection, std::string_view name) {
  return has_column(connection, "attempts", name);
}

/// Whether the views are those of this petlab: they leave out what is hidden, have tags, take the
/// selected step from the selected values, and show numbers of examples.
static bool has_views(Connection& connection) {
  Query view(connection,
             "SELECT 1 FROM sqlite_master WHERE name = 'results' AND instr(sql, 'hidden_trials') "
             "AND instr(sql, 'sweep_tags') AND instr(sql, 'selected_values')");
  return view.step() && has_table(connection, "former_sweep_results") &&
         has_table(connection, "sweep_scores") && has_table(connection, "counted_values") &&
         has_table(connection, "attempt_examples");
}

bool has_table(Connection& connection, std::string_view name) {
  Query table(connection, "SELECT 1 FROM sqlite_master WHERE name = ?1");
  return table.with(name).step();
}

bool knows_care(Connection& connection) {
  if (!connection.knows_care) connection.knows_care = has_table(connection, "renewals");
  return connection.knows_care;
}

void check_columns(Connection& connection) {
  if (connection.guard("read it",
                       [&] { return has_column_of_attempts(connection, "device_memory_mib"); }))
    return;
  throw Error(fmt::format(
      "{}: an earlier petlab made the database; petlab db import --db {} --runs FOLDER, or "
      "petlab run of its sweep, makes it fit this one",
      connection.file().string(), connection.file().string()));
}

// The names of what a script makes where it is not there yet.
static std::vector<std::string> made_by(std::string_view script) {
  constexpr std::string_view kBefore = "IF NOT EXISTS ";
  std::vector<std::string> names;
  for (std::size_t at = script.find(kBefore); at != std::string_view::npos;
       at = script.find(kBefore, at)) {
    at += kBefore.size();
    names.emplace_back(script.substr(at, script.find_first_of(" \n(", at) - at));
  }
  return names;
}

static bool is_up_to_date(Connection& connection) {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const char* script : {kAddedLater, kRemarkTables, kExampleTables, kSelectedTables}) {
      for (std::string& name : made_by(script)) all.push_back(std::move(name));
    }
    return all;
  }();
  return std::all_of(names.begin(), names.end(),
                     [&](const std::string& name) { return has_table(connection, name); }) &&
         absent_fields(connection).empty() &&
         has_column_of_attempts(connection, "device_memory_mib") &&
         has_column_of_attempts(connection, "retries") &&
         has_column(connection, "sweeps", "overrides") && has_views(connection) &&
         is_filled(connection) && has_selected_values(connection);
}

static void add_what_is_missing(Connection& connection) {
  connection.exec(kAddedLater);
  connection.exec(kRemarkTables);
  connection.exec(kExampleTables);
  connection.exec(kSelectedTables);
  if (!has_column_of_attempts(connection, "device_memory_mib")) {
    connection.exec("ALTER TABLE attempts ADD COLUMN device_memory_mib REAL");
  }
  if (!has_column_of_attempts(connection, "retries")) {
    connection.exec("ALTER TABLE attempts ADD COLUMN retries INTEGER");
  }
  if (!has_column(connection, "sweeps", "overrides")) {
    connection.exec("ALTER TABLE sweeps ADD COLUMN overrides TEXT");
  }
  for (const FieldColumn* field : absent_fields(connection)) {
    connection.exec(
        fmt::format("ALTER TABLE trials ADD COLUMN {} {}", quoted(field->column), field->type)
            .c_str());
    connection.exec(fmt::format("UPDATE trials SET {} = json_extract(config, '$.{}')",
                                quoted(field->column), fmt::join(field->path, "."))
                        .c_str());
  }
  fill_left_out(connection);
  for (const std::string& view : views()) connection.exec(view.c_str());
  if (!has_selected_values(connection)) {
    fill_selected_values(connection);
    connection.exec(kNoteSelected);
  }
}

std::optional<std::filesystem::path> bring_up_to_date(Connection& connection) {
  if (connection.guard("read it", [&] { return is_up_to_date(connection); })) return std::nullopt;
  std::optional<std::filesystem::path> copy;
  connection.guard("bring it up to date", [&] {
    connection.exec("BEGIN IMMEDIATE");
    try {
      // Again: another process may have been faster. None writes from here on.
      if (!is_up_to_date(connection)) {
        Query trials(connection, "SELECT 1 FROM trials LIMIT 1");
        if (trials.step()) copy = keep_before_update(connection.file());
        add_what_is_missing(connection);
      }
      connection.exec("COMMIT");
    } catch (...) {
      if (connection.in_transaction()) connection.exec("ROLLBACK");
      throw;
    }
  });
  return copy;
}

}  // namespace petlab::results::internal
