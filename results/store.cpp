#include "results/store.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

#include "base/invariant.h"
#include "base/sha256.h"
#include "base/shallow_json.h"
#include "results/connection.h"
#include "results/host_lock.h"
#include "results/made_file.h"
#include "results/provenance.h"
#include "results/schema.h"
#include "results/snapshot.h"
#include "results/trial_rows.h"

namespace petlab::results {

namespace internal {

Connection& connection_of(const Batch& batch) { return *batch.connection_; }
Connection& connection_of(const Reader& reader) { return *reader.connection_; }

}  // namespace internal

namespace {

using internal::Connection;
using internal::Query;
using internal::trial_key;
using internal::TrialWriter;

/// The folder to which the stored path of a runs folder is relative.
std::filesystem::path real_folder_of(const std::filesystem::path& database) {
  return std::filesystem::canonical(database).parent_path();
}

AttemptRef insert_attempt(Connection& connection, std::int64_t trial,
                          const protocol::AttemptBegun& attempt, std::int64_t number) {
  // Keys are never reused: other processes may still use an old one for its attempt.
  Query insert(
      connection,
      "INSERT INTO attempts (trial, number, sweep, owner, launcher, \"commit\", begun_at, "
      "parent, resume_step, resume_seq, resume_checkpoint, host, boot_id, pid_namespace, "
      "device, retries, key) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, "
      "?13, ?14, ?15, ?16, 1 + max(coalesce((SELECT max(key) FROM attempts), 0), coalesce((SELECT "
      "max(key) FROM forgotten_attempts), 0))) ON CONFLICT DO NOTHING");
  insert.with(trial)
      .with(number)
      .text_or_null(attempt.sweep)
      .text_or_null(attempt.owner)
      .text_or_null(attempt.launcher)
      .text_or_null(attempt.commit)
      .with(attempt.time);
  if (const auto& resume = attempt.resume) {
    insert.with(resume->attempt).with(resume->step).with(resume->seq).with(resume->checkpoint);
  } else {
    insert.null().null().null().null();
  }
  insert.text_or_null(attempt.host)
      .text_or_null(attempt.boot_id)
      .text_or_null(attempt.pid_namespace)
      .text_or_null(attempt.device)
      .with(attempt.retries)
      .run();
  Query key(connection, "SELECT key FROM attempts WHERE trial = ?1 AND number = ?2");
  key.with(trial).with(number).step();
  const AttemptRef inserted{key.integer(0), attempt.trial_id, number};
  internal::record_provenance(connection, inserted.key, internal::ProvenanceSource::petlab,
                              attempt.provenance);
  return inserted;
}

}  // namespace

Store::Store(const std::filesystem::path& database, const OpenOptions& options)
    : reader_(std::shared_ptr<Connection>()) {
  // SQLite follows links, so its auxiliary files are next to the link's target.
  const std::filesystem::path real =
      std::filesystem::is_symlink(database) ? internal::real_path(database) : database;
  const bool rollback = options.journal == OpenOptions::Journal::rollback ||
                        (options.journal == OpenOptions::Journal::automatic &&
                         internal::on_network_file_system(real));
  internal::remove_abandoned(real);
  if (!std::filesystem::exists(real)) internal::create_database(real, rollback);
  if (rollback) {
    lock_ = std::make_unique<internal::HostLock>(real, options.lease, options.takes_ended_leases);
  }
  connection_ = std::make_shared<Connection>(database, Connection::Mode::write, options);
  internal::use_journal(*connection_, rollback);
  internal::update(*connection_);
  reader_ = Reader(connection_);
}

Store::~Store() = default;
Store::Store(Store&&) noexcept = default;
Store& Store::operator=(Store&&) noexcept = default;

const std::filesystem::path& Store::file() const { return connection_->file(); }
bool Store::alone() const { return lock_ != nullptr; }
void Store::renew_lease() {
  if (lock_) lock_->renew();
}
std::vector<std::string> Store::vanished_hosts() const {
  return lock_ ? lock_->vanished() : std::vector<std::string>();
}
void Store::forget_vanished_hosts() { lock_->forget_vanished(); }
const Reader& Store::read() const { return reader_; }
std::int64_t Store::last_committed() const { return connection_->last_committed; }

std::int64_t Store::last_rolled_back() const { return connection_->last_rolled_back; }

Batch Store::begin() {
  PETLAB_INVARIANT(!connection_->batch_open, "a second transaction begins within another");
  renew_lease();
  connection_->check_not_moved();
  connection_->guard("begin to write", [&] { connection_->exec("BEGIN IMMEDIATE"); });
  connection_->batch_open = true;
  return Batch(connection_, ++connection_->last_serial);
}

Batch::Batch(std::shared_ptr<Connection> connection, std::int64_t serial)
    : connection_(std::move(connection)), serial_(serial) {}

Batch::Batch(Batch&&) noexcept = default;

Batch::~Batch() {
  if (!connection_ || connection_->last_committed == serial_) return;
  connection_->last_rolled_back = serial_;
  connection_->roll_back();
}

void Batch::commit() {
  internal::writing(*this, "commit", [&](Connection& connection) {
    connection.check_not_moved();
    connection.exec("COMMIT");
  });
  connection_->last_committed = serial_;
  connection_->series_changed = false;
  connection_->batch_open = false;
}

void Batch::record_trial(const TrialRow& trial) {
  static const TrialWriter writer;
  internal::writing(*this, "record a trial", [&](Connection& connection) {
    Query same(
        connection,
        "SELECT config = ?2 AND (?3 IS NULL OR backbone_digest IS ?3) AND (?4 IS NULL OR "
        "bls_bits IS ?4) AND (?5 IS NULL OR stored_bits IS ?5) FROM trials WHERE trial_id = ?1");
    same.with(trial.trial_id)
        .with(trial.config)
        .text_or_null(trial.backbone_digest)
        .with(trial.bls_bits)
        .with(trial.stored_bits);
    if (same.step() && same.maybe_integer(0) == 1) return;
    writer.write(connection, trial);
  });
}

void Batch::record_sweep_text(const std::string& digest, std::string_view text) {
  internal::writing(*this, "record a sweep", [&](Connection& connection) {
    internal::record_sweep_text(connection, digest, text);
  });
}

void Batch::record_sweep(const SweepRow& sweep, std::span<const TrialRow> trials, double time) {
  if (!sweep.catalog.empty()) record_sweep_text(base::sha256(sweep.catalog), sweep.catalog);
  for (const TrialRow& trial : trials) record_trial(trial);
  internal::writing(*this, "record a sweep", [&](Connection& connection) {
    Query insert(connection,
                 "INSERT INTO sweeps (name, about, file, digest, recorded_at, overrides) VALUES "
                 "(?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT (name) DO UPDATE SET about = ?2, file = ?3, "
                 "digest = ?4, recorded_at = ?5, overrides = ?6");
    const std::string overrides =
        sweep.overrides.empty() ? "" : nlohmann::json(sweep.overrides).dump();
    insert.with(sweep.name)
        .text_or_null(sweep.about)
        .text_or_null(sweep.file)
        .text_or_null(sweep.digest)
        .with(time)
        .text_or_null(overrides)
        .run();
    if (!sweep.text.empty()) {
      internal::record_sweep_text(connection, sweep.digest, sweep.text);
    }
    Query find(connection, "SELECT key FROM sweeps WHERE name = ?1");
    find.with(sweep.name).step();
    const std::int64_t key = find.integer(0);
    internal::keep_former_members(connection, key, sweep, trials, time);
    Query clear(connection, "DELETE FROM sweep_trials WHERE sweep = ?1");
    clear.with(key).run();
    std::int64_t place = 0;
    Query add(connection,
              "INSERT OR IGNORE INTO sweep_trials (sweep, trial, variant, place) VALUES (?1, ?2, "
              "?3, ?4)");
    for (const SweepRow::Member& member : sweep.members) {
      add.with(key).with(trial_key(connection, member.trial_id));
      add.with(member.variant).with(place++).run();
      add.again();
    }
    internal::forget_former_members(connection, key);
  });
}

void Batch::record_runs_folder(const std::filesystem::path& runs) {
  internal::writing(*this, "record the runs folder", [&](Connection& connection) {
    const std::filesystem::path whole = std::filesystem::weakly_canonical(runs);
    const std::filesystem::path below = whole.lexically_relative(real_folder_of(connection.file()));
    const bool inside = !below.empty() && *below.begin() != "..";
    const std::string value = (inside ? below : whole).string();
    Query set(connection,
              "INSERT INTO settings (name, value) VALUES ('runs', ?1) ON CONFLICT (name) DO UPDATE "
              "SET value = ?1 WHERE value IS NOT ?1");
    set.with(value).run();
  });
}

Claim Batch::begin_attempt(const NewAttempt& attempt) {
  return internal::writing(*this, "begin an attempt", [&](Connection& connection) -> Claim {
    Query trial(
        connection,
        "SELECT key, cancelled, coalesce((SELECT max(number) FROM attempts WHERE trial = "
        "trials.key), 0), EXISTS (SELECT 1 FROM attempts WHERE trial = trials.key AND "
        "event_outcome = 'finished' AND number > retried_after), coalesce((SELECT changes FROM "
        "trial_changes WHERE trial = trials.key), 0), max(retried_after, coalesce((SELECT "
        "max(number) FROM forgotten_attempts WHERE trial = trials.key), 0)) FROM trials WHERE "
        "trial_id = ?1");
    if (!trial.with(attempt.trial_id).step()) {
      throw std::invalid_argument(
          fmt::format("trial {} is not in {}", attempt.trial_id, connection.file().string()));
    }
    const std::int64_t key = trial.integer(0);
    ClaimRefusal refusal;
    refusal.cancelled = trial.integer(1) != 0;
    refusal.latest = trial.integer(2);
    refusal.finished = trial.integer(3) != 0;
    const bool changed = trial.integer(4) != attempt.planned_from;
    Query rival(connection,
                "SELECT outcome = 'open', owner, host FROM attempts WHERE trial = ?1 ORDER BY "
                "outcome = 'open' DESC, number DESC LIMIT 1");
    if (rival.with(key).step()) {
      refusal.open = rival.integer(0) != 0;
      refusal.owner = rival.text(1);
      refusal.host = rival.text(2);
    }
    if (refusal.cancelled || refusal.open || refusal.finished || changed) return refusal;
    const std::int64_t given = std::max(refusal.latest, trial.integer(5));
    return insert_attempt(connection, key, attempt, std::max(given + 1, attempt.at_least));
  });
}

AttemptRef Batch::record_attempt(const protocol::AttemptBegun& attempt, std::int64_t number) {
  return internal::writing(*this, "record an attempt", [&](Connection& connection) {
    return insert_attempt(connection, trial_key(connection, attempt.trial_id), attempt, number);
  });
}

void Batch::forget_attempt(const AttemptRef& attempt) {
  internal::writing(*this, "take an attempt back", [&](Connection& connection) {
    for (const char* sql :
         {"DELETE FROM metric_values WHERE attempt = ?1", "DELETE FROM progress WHERE attempt = ?1",
          "DELETE FROM loss_points WHERE attempt = ?1", "DELETE FROM artifacts WHERE attempt = ?1",
          "DELETE FROM provenance WHERE attempt = ?1", "DELETE FROM examples WHERE attempt = ?1",
          "DELETE FROM attempts WHERE key = ?1"}) {
      Query(connection, sql).with(attempt.key).run();
    }
  });
}

void Batch::record_launch(const AttemptRef& attempt, const Launch& launch) {
  internal::writing(*this, "record a launch", [&](Connection& connection) {
    Query(
        connection,
        "UPDATE attempts SET pid = ?2, pid_start = ?3, host = coalesce(?4, host), boot_id = "
        "coalesce(?5, boot_id), pid_namespace = coalesce(?6, pid_namespace), device = coalesce(?7, "
        "device), job = ?8, launched_at = ?9 WHERE key = ?1")
        .with(attempt.key)
        .with(launch.pid)
        .with(launch.pid_start)
        .text_or_null(launch.host)
        .text_or_null(launch.boot_id)
        .text_or_null(launch.pid_namespace)
        .text_or_null(launch.device)
        .text_or_null(launch.job)
        .with(launch.time)
        .run();
    if (launch.code.empty()) return;
    nlohmann::ordered_json petlab =
        base::shallow_ordered_json_or_none(internal::provenance_of(connection, attempt.key).petlab);
    if (!petlab.is_object()) petlab = nlohmann::ordered_json::object();
    petlab.update(nlohmann::ordered_json::parse(launch.code));
    Query(connection, "UPDATE provenance SET petlab = NULL WHERE attempt = ?1")
        .with(attempt.key)
        .run();
    internal::record_provenance(connection, attempt.key, internal::ProvenanceSource::petlab,
                                petlab.dump());
  });
}

void Batch::record_ending(const AttemptRef& attempt, const Ending& ending) {
  if (ending.outcome == Outcome::open || ending.outcome == Outcome::finished) {
    throw std::invalid_argument("an orchestrator cannot say that an attempt is " +
                                std::string(to_string(ending.outcome)));
  }
  internal::writing(*this, "record how an attempt ended", [&](Connection& connection) {
    Query(
        connection,
        "UPDATE attempts SET ending_outcome = ?2, ending_reason = ?3, exit_code = ?4, signal = ?5, "
        "log_tail = ?6, ending_at = ?7 WHERE key = ?1 AND ending_outcome IS NULL")
        .with(attempt.key)
        .with(to_string(ending.outcome))
        .text_or_null(ending.reason)
        .with(ending.exit_code)
        .with(ending.signal)
        .text_or_null(ending.log_tail)
        .with(ending.time)
        .run();
  });
}

}  // namespace petlab::results
