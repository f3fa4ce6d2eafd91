#include "results/schema.h"

#include <SQLiteCpp/Database.h>
#include <SQLiteCpp/Exception.h>
#include <fmt/format.h>
#include <sqlite3.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <stdexcept>

#include "base/files.h"
#include "results/backup.h"
#include "results/connection.h"
#include "results/examples.h"
#include "results/left_out.h"
#include "results/made_file.h"
#include "results/notices.h"
#include "results/remarks.h"
#include "results/selected_values.h"
#include "sweeps/fields.h"
#include "sweeps/worker_catalog.h"

namespace petlab::results::internal {
namespace {

// Keys are integers, so that rows of metrics are small. Users and reports read the views, which
// have trial_id, attempt (its number) and names. docs/reference/database.md describes each column.
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

// Triggers count changes, so that no code that writes attempts can omit it.
constexpr const char* kAddedTables = R"sql(
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

// Ends with a slash. Relative to the database's folder if the runs folder is below it. NULL if the
// database has no runs folder.
constexpr const char* kTrialFolder =
    "(SELECT value FROM settings WHERE name = 'runs') || '/' || t.trial_id || '/'";

/// The columns queried most; all others are in the two JSON objects.
std::string provenance_view() {
  std::string columns;
  for (const char* column : {"commit", "clean", "compiler", "flags", "sweep_digest", "overrides"}) {
    columns += fmt::format(", json_extract(p.text, '$.{}') AS {}", column, quoted(column));
  }
  for (const char* column : {"libtorch", "commit", "clean", "compiler", "flags"}) {
    const bool is_worker_only = std::string_view(column) == "libtorch";
    columns += fmt::format(", json_extract(q.text, '$.{0}') AS {1}{0}", column,
                           is_worker_only ? "" : "worker_");
  }
  for (const char* column : {"processor", "kernel", "gpu", "gpu_driver"}) {
    columns += fmt::format(
        ", coalesce(json_extract(q.text, '$.{0}'), json_extract(p.text, '$.{0}')) AS {0}", column);
  }
  return fmt::format(
      "SELECT t.trial_id, a.number AS attempt, a.sweep, a.host, "
      "a.device, a.launcher, a.worker, a.worker_version{}, a.backbone_digest, a.data_digests, "
      "a.numerics, p.text AS petlab_said, q.text AS worker_said, x.text AS examples FROM trials t "
      "CROSS JOIN attempts a ON a.trial = t.key LEFT JOIN provenance v ON v.attempt = a.key LEFT "
      "JOIN provenance_texts p ON p.key = v.petlab LEFT JOIN provenance_texts q ON q.key = "
      "v.worker LEFT JOIN examples e ON e.attempt = a.key LEFT JOIN example_texts x ON x.key = "
      "e.text",
      columns);
}

/// Calls `take` with each catalog that the database records, in the order of recording.
void each_catalog(Connection& connection,
                  const std::function<void(const sweeps::WorkerCatalog&)>& take) {
  Query rows(connection,
             "SELECT text FROM sweep_texts WHERE substr(text, 1, ?1) = ?2 ORDER BY digest");
  rows.with(static_cast<std::int64_t>(sweeps::kCatalogStart.size())).with(sweeps::kCatalogStart);
  while (rows.step()) {
    try {
      take(sweeps::parse_worker_catalog(rows.text(0)));
    } catch (const std::invalid_argument& error) {
      throw Error(fmt::format("{}: {}", connection.file().string(), error.what()));
    }
  }
}

/// The columns and paths of the fields that the database's catalogs declare.
std::map<std::string, std::string> declared_columns(Connection& connection) {
  std::map<std::string, std::string> columns;
  each_catalog(connection, [&](const sweeps::WorkerCatalog& catalog) {
    for (const sweeps::DeclaredField& field : catalog.fields) {
      columns[field.column] = "$." + field.name;
    }
  });
  return columns;
}

struct View {
  const char* name;
  std::string text;  // the SELECT
};

/// CROSS JOIN fixes the order: from the few trials to their many values.
std::vector<View> views(Connection& connection) {
  std::string columns;
  for (const FieldColumn& field : field_columns())
    columns += fmt::format(", t.{}", quoted(field.column));
  for (const auto& [column, path] : declared_columns(connection)) {
    columns += fmt::format(", json_extract(t.config, '{}') AS {}", path, quoted(column));
  }
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
  const std::string of_trials = fmt::format("SELECT {} FROM trials t ", selected);
  const auto of_members = [&](const char* members, const std::string& joined) {
    return fmt::format(
        "SELECT w.name AS sweep, nullif(m.variant, '') AS variant, {} FROM sweeps w CROSS JOIN {} "
        "m ON m.sweep = w.key CROSS JOIN trials t ON t.key = m.trial {}",
        selected, members, joined);
  };
  return {
      {"metrics",
       "SELECT t.trial_id, a.number AS attempt, v.seq, v.step, s.split, s.task, s.name, v.value "
       "FROM trials t CROSS JOIN attempts a ON a.trial = t.key CROSS JOIN metric_values v ON "
       "v.attempt = a.key CROSS JOIN series s ON s.key = v.series"},
      {"results", of_trials + every},
      {"sweep_results", of_members("sweep_trials", every)},
      {"former_sweep_results", of_members("former_sweep_trials", every)},
      {"scores", of_trials + counting},
      {"sweep_scores", of_members("sweep_trials", counting)},
      {"counted_values", kCountedView},
      {"attempt_provenance", provenance_view()},
      {"attempt_examples", kExamplesView},
  };
}

void make_view(Connection& connection, const View& view) {
  connection.exec(
      fmt::format("DROP VIEW IF EXISTS {0}; CREATE VIEW {0} AS {1}", view.name, view.text).c_str());
}

std::vector<FieldColumn> collect_fields() {
  std::vector<FieldColumn> found = {{"tasks", {"tasks"}, "TEXT"}};
  for (const sweeps::Field& row : sweeps::fields()) {
    if (row.declared != nullptr) continue;
    found.resize(std::max(found.size(), static_cast<std::size_t>(row.place) + 1));
    FieldColumn& field = found.at(static_cast<std::size_t>(row.place));
    field.column = row.column;
    field.type = sweeps::sql_type(row.type);
    const std::size_t dot = row.name.find('.');
    if (dot != std::string_view::npos) field.path.emplace_back(row.name.substr(0, dot));
    field.path.emplace_back(row.name.substr(dot == std::string_view::npos ? 0 : dot + 1));
  }
  return found;
}

// Adds `count` columns of fields, starting with `first`, with their values in configurations.
void add_fields(Connection& connection, std::size_t first, std::size_t count) {
  for (const FieldColumn& field : std::span(field_columns()).subspan(first, count)) {
    connection.exec(fmt::format("ALTER TABLE trials ADD COLUMN {0} {1}; UPDATE trials SET {0} = "
                                "json_extract(config, '$.{2}')",
                                quoted(field.column), field.type, fmt::join(field.path, "."))
                        .c_str());
  }
}

bool finds(Connection& connection, std::string_view sql, std::string_view first,
           std::string_view second) {
  Query row(connection, sql);
  return row.with(first).with(second).step();
}

// Databases of version 1 vary, because fields and tables were added without a new version, and
// `settings` recorded which were filled. Only this step checks what exists.
void complete_version_1(Connection& connection) {
  constexpr std::size_t kFields = 44;
  const auto lacks = [&](std::string_view table, std::string_view column) {
    return !finds(connection, "SELECT 1 FROM pragma_table_info(?1) WHERE name = ?2", table, column);
  };
  for (const char* script : {kAddedTables, kRemarkTables, kExampleTables, kSelectedTables}) {
    connection.exec(script);
  }
  if (lacks("attempts", "device_memory_mib")) {
    connection.exec("ALTER TABLE attempts ADD COLUMN device_memory_mib REAL");
  }
  if (lacks("attempts", "retries")) {
    connection.exec("ALTER TABLE attempts ADD COLUMN retries INTEGER");
  }
  if (lacks("sweeps", "overrides")) {
    connection.exec("ALTER TABLE sweeps ADD COLUMN overrides TEXT");
  }
  for (std::size_t field = 0; field < kFields; ++field) {
    if (lacks("trials", field_columns()[field].column)) add_fields(connection, field, 1);
  }
  if (!finds(connection, "SELECT 1 FROM settings WHERE name = ?1 AND value = ?2", "values_selected",
             "1")) {
    make_view(connection, {"counted_values", kCountedView});
    fill_selected_values(connection);
  }
}

// The index has the order in which questions read a trial's sweeps and variants.
void add_early_stops_and_order_members(Connection& connection) {
  connection.exec(R"sql(
CREATE TABLE IF NOT EXISTS early_stops (
  trial INTEGER PRIMARY KEY REFERENCES trials, after_attempt INTEGER NOT NULL,
  after_step INTEGER NOT NULL, why TEXT NOT NULL, decided_at REAL);
CREATE TABLE IF NOT EXISTS judged_validations (
  attempt INTEGER PRIMARY KEY REFERENCES attempts, step INTEGER NOT NULL);
DROP INDEX IF EXISTS sweep_trials_by_trial;
CREATE INDEX IF NOT EXISTS sweep_trials_by_place ON sweep_trials (trial, sweep, place))sql");
}

// The first step updates version 1 to 2, the second 2 to 3, and so on. Released steps never change.
// While a database is updated, others may have it open and continue to write as in their version,
// so steps remove no table and no column. For a new field, add a step that calls add_fields.
using Step = void (*)(Connection&);
constexpr Step kSteps[] = {complete_version_1, add_early_stops_and_order_members};
constexpr std::int32_t kOldestVersion = 1;
static_assert(kDatabaseVersion == kOldestVersion + std::int32_t{std::size(kSteps)});

}  // namespace

void apply_steps(Connection& connection, std::int64_t version) {
  for (const Step step : std::span(kSteps).subspan(static_cast<std::size_t>(version - 1))) {
    step(connection);
  }
  fill_left_out(connection);
  extend_views(connection);
  connection.exec(fmt::format("PRAGMA user_version = {}", kDatabaseVersion).c_str());
}

void extend_views(Connection& connection) {
  for (const View& view : views(connection)) make_view(connection, view);
}

void learn_catalogs(Connection& connection) {
  each_catalog(connection, [](const sweeps::WorkerCatalog& catalog) { sweeps::learn(catalog); });
}

std::string json_path(const sweeps::Field& field) { return fmt::format("$.{}", field.name); }

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
  MadeFile pending(file);
  try {
    Connection database(pending.name(),
                        std::make_unique<SQLite::Database>(
                            pending.name().string(), SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE));
    database.exec("PRAGMA page_size = 8192; PRAGMA synchronous = FULL; BEGIN IMMEDIATE");
    database.exec(fmt::format("PRAGMA application_id = {}", kApplicationId).c_str());
    database.exec(kTables);
    apply_steps(database, kOldestVersion);
    database.exec("COMMIT");
    // Switch to WAL last, when the file is complete. If a log existed, closing would merge it
    // without reporting errors.
    if (!rollback_journal) database.exec("PRAGMA journal_mode = WAL");
  } catch (const SQLite::Exception& error) {
    const int code = error.getErrorCode();
    throw Error(fmt::format("{}: cannot make it: {}", file.string(),
                            code == SQLITE_FULL || code == SQLITE_IOERR
                                ? "the disk is full or cannot be written; free some space and run "
                                  "the same command again"
                                : error.what()));
  }
  return pending.keep();
}

std::int64_t checked_version(Connection& connection) {
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
  if (version > kDatabaseVersion) {
    throw Error(
        fmt::format("{}: the database has version {}, this petlab knows up to {}; use a newer "
                    "petlab, or name another file with --db",
                    file, version, kDatabaseVersion));
  }
  if (version < kOldestVersion) {
    throw Error(
        fmt::format("{}: the database has version {}, this petlab needs {} to {}; move it away and "
                    "rebuild it from the runs folder: petlab db rebuild",
                    file, version, kOldestVersion, kDatabaseVersion));
  }
  return version;
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

void update(Connection& connection) {
  if (checked_version(connection) == kDatabaseVersion) return;
  connection.guard("update it", [&] {
    connection.exec("BEGIN IMMEDIATE");
    try {
      // Check again, because another process may have been faster. From here on, no other process
      // writes.
      const std::int64_t version = checked_version(connection);
      std::filesystem::path backup;
      if (version < kDatabaseVersion) {
        backup = keep_before_update(connection.file(), version);
        apply_steps(connection, version);
      }
      connection.exec("COMMIT");
      if (!backup.empty()) note_updated(connection.file(), version, backup);
    } catch (...) {
      connection.roll_back();
      throw;
    }
  });
}

}  // namespace petlab::results::internal
