#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "results/attempt.h"
#include "results/error.h"

namespace petlab::results {

/// PRAGMA user_version of the databases that this petlab writes. It alone determines a database's
/// tables, columns, triggers and views (docs/reference/database.md).
inline constexpr std::int32_t kDatabaseVersion = 3;

/// A trial as planned.
struct TrialRow {
  std::string trial_id;
  std::string config;           // JSON object: sweeps::to_json(config).dump()
  std::string backbone_digest;  // "sha256:…", may be empty
  std::optional<double> bls_bits;
  std::optional<std::int64_t> stored_bits;
  bool operator==(const TrialRow&) const = default;
};

/// A sweep as last expanded, identified by its name.
struct SweepRow {
  struct Member {
    std::string trial_id;
    std::string variant;  // empty if the sweep has no variants
    bool operator==(const Member&) const = default;
  };
  std::string name;
  std::string about;
  std::string file;
  std::string digest;
  std::vector<Member> members;  // one member for each variant of a trial
  /// Settings in addition to the file, for all trials: `training.epochs=1`.
  std::vector<std::string> overrides = {};
  std::string text = {};  // of the file; empty if unknown. Stored by digest (Reader::sweep_text)
  /// sweeps::WorkerCatalog::text of the worker's catalog; empty: none. Stored by digest likewise.
  std::string catalog = {};
  bool operator==(const SweepRow&) const = default;
};

/// A sweep's trials, with those of equal state grouped.
struct SweepOutline {
  /// Trials with the same state: one of them, and their number.
  struct Alike {
    std::string trial_id;
    std::int64_t trials = 0;
  };
  std::int64_t trials = 0;
  /// Trials never tried, grouped by `cancelled`, and trials with a result and no open attempt,
  /// grouped by the origin of the result.
  std::vector<Alike> alike;
  std::vector<std::string> others;  // others, sorted; their states are determined one by one
  std::int64_t discarded = 0;       // trials whose last result was discarded and not replaced yet
  std::int64_t hidden = 0;          // number of hidden trials
  /// The remaining steps of the trials that a rule stopped early, as they reported them.
  std::int64_t steps_saved = 0;
};

/// The claim failed: another orchestrator runs the trial, it changed since the caller looked, it
/// was cancelled, or it has a result that is not to be recomputed.
struct ClaimRefusal {
  std::int64_t latest = 0;  // the highest attempt number
  bool open = false;        // this attempt is not over
  bool cancelled = false;   // the user cancelled the trial
  bool finished = false;    // since the last retry decision
  std::string owner;
  std::string host;
};
using Claim = std::variant<AttemptRef, ClaimRefusal>;

struct OpenOptions {
  /// How long a write waits for writes of other processes before it throws an Error.
  std::chrono::milliseconds busy_timeout = std::chrono::minutes(2);
  /// A commit is on the disk when it returns (synchronous=FULL). Otherwise a power failure, but
  /// never a kill, may undo the last commits. The runs folder's files contain all of them.
  bool synced = true;
  /// No other connection opens the database, and its creator syncs it when complete: it is neither
  /// locked nor synced before.
  bool alone = false;
  /// automatic: rollback on a network file system, where one process at a time may write (it holds
  /// `<database>.lock`); WAL elsewhere.
  enum class Journal { automatic, wal, rollback };
  Journal journal = Journal::automatic;
  /// On a network file system: if this process does not renew its lease in time (renew_lease()),
  /// another host may take the database. 0: no other host ever may.
  std::chrono::seconds lease{0};
  /// Whether to take the database from a host whose lease has ended (Store::vanished_hosts()).
  bool takes_ended_leases = false;
};

class Batch;
class Reader;
namespace internal {
class Connection;
class HostLock;
// For the functions on a Batch or a Reader.
Connection& connection_of(const Batch& batch);
Connection& connection_of(const Reader& reader);
}  // namespace internal

/// Reads a petlab database, while others may write it. Each call sees a consistent state. Use it
/// from one thread at a time. Throws results::Error. The functions of decisions.h, remarks.h and
/// attempt_events.h read the user's decisions and remarks, and the progress of workers.
class Reader {
 public:
  /// Reads a database of an earlier version through an updated copy. Throws Error for a file that
  /// is missing, not petlab's database, or of a newer version. A database is briefly locked when
  /// its last user closes it, or when it is opened after a kill; a read waits up to `busy_timeout`
  /// for that.
  explicit Reader(const std::filesystem::path& database,
                  std::chrono::milliseconds busy_timeout = OpenOptions().busy_timeout);
  ~Reader();
  Reader(Reader&&) noexcept;
  Reader& operator=(Reader&&) noexcept;

  /// In the order of `trial_ids`; unknown ones have known == false.
  std::vector<TrialFacts> trial_facts(std::span<const std::string> trial_ids) const;
  /// All attempts with outcome open.
  std::vector<AttemptFacts> open_attempts() const;
  /// All attempts started by an orchestrator.
  std::vector<AttemptFacts> attempts_of_owner(const std::string& owner) const;
  /// std::nullopt if it does not exist.
  std::optional<AttemptFacts> attempt_facts(const std::string& trial_id, std::int64_t number) const;
  /// The origin of an attempt's numbers; texts are empty if it was not reported.
  Provenance provenance(const AttemptRef& attempt) const;
  /// The text of the sweep file with that digest, as it was run; std::nullopt if unknown.
  std::optional<std::string> sweep_text(const std::string& digest) const;
  /// The sweep of that name; std::nullopt if it does not exist.
  std::optional<SweepRow> sweep(const std::string& name) const;
  /// Trials that have a result and are, or were, members of the sweep.
  std::vector<std::string> finished_members(const std::string& sweep) const;
  /// The runs folder set by record_runs_folder(), relative to the database's current folder if it
  /// was below that; std::nullopt if none was set.
  std::optional<std::filesystem::path> runs_folder() const;
  /// Calls `take` with each member of a sweep that is not hidden, in the sweep's order, in one pass
  /// over the database.
  void each_member(const std::string& sweep,
                   const std::function<void(const SweepRow::Member&, const TrialRow&,
                                            const TrialFacts&)>& take) const;
  /// Summarizes the states of a sweep's trials without reading all attempts; empty if the sweep
  /// does not exist.
  SweepOutline outline(const std::string& sweep) const;
  /// The variants of a trial in a sweep, in the sweep's order.
  std::vector<std::string> variants(const std::string& sweep, const std::string& trial_id) const;
  /// The names of all sweeps, in the order of first recording.
  std::vector<std::string> sweep_names() const;
  /// A trial with its configuration (JSON); std::nullopt if it does not exist.
  std::optional<TrialRow> trial(const std::string& trial_id) const;
  /// At most `limit` trial ids that begin with `prefix`, as typed by a user.
  std::vector<std::string> trials_with_prefix(const std::string& prefix, int limit) const;
  /// Changes whenever another process has written; takes microseconds.
  std::int64_t data_version() const;

 private:
  friend class Store;
  friend class OneState;
  friend class ScoreReader;
  friend internal::Connection& internal::connection_of(const Reader& reader);
  explicit Reader(std::shared_ptr<internal::Connection> connection);
  std::shared_ptr<internal::Connection> connection_;
};

/// A database opened for writing. Creates a missing one, and updates an earlier version. Several
/// processes may write, one after the other. Use it from one thread at a time, with one Batch at a
/// time.
class Store {
 public:
  /// Throws Error: folder missing or read-only, not petlab's database, version too old or too new,
  /// disk full, locked for longer than busy_timeout. The message names the file and what to do.
  explicit Store(const std::filesystem::path& database, const OpenOptions& options = {});
  ~Store();
  Store(Store&&) noexcept;
  Store& operator=(Store&&) noexcept;

  const std::filesystem::path& file() const;
  /// True if no other process can open the database for writing: it is on a network file system.
  bool alone() const;
  /// Renews the lease of OpenOptions if that is due. A batch does so, too. Throws Error if it
  /// ended.
  void renew_lease();
  /// The hosts from which this or an earlier process took the database because their leases ended,
  /// until forget_vanished_hosts(): their attempts are open.
  std::vector<std::string> vanished_hosts() const;
  void forget_vanished_hosts();
  /// Uses the same connection, so it also sees uncommitted writes of the current batch.
  const Reader& read() const;
  /// Starts a transaction; waits for other writers.
  Batch begin();
  /// Serial number of the last batch committed; 0 before the first.
  std::int64_t last_committed() const;
  /// Serial number of the last batch rolled back; 0 before the first.
  std::int64_t last_rolled_back() const;

 private:
  std::unique_ptr<internal::HostLock> lock_;  // released after the connection is closed
  std::shared_ptr<internal::Connection> connection_;
  Reader reader_;
};

/// A transaction: commit() stores everything or nothing. Many changes in one batch cost little more
/// than one. Every call throws Error if the database cannot be written; after that, the batch may
/// only be destroyed.
///
/// The methods write an orchestrator's records: trials, sweeps, and attempts from claim to end. The
/// functions of attempt_events.h write workers' reports; those of decisions.h and remarks.h write
/// the user's.
class Batch {
 public:
  ~Batch();  // rolls back unless committed
  Batch(Batch&&) noexcept;
  Batch& operator=(Batch&&) = delete;

  std::int64_t serial() const { return serial_; }
  /// Stores nothing and throws Error on failure, also if the database file was deleted or replaced.
  void commit();

  /// Adds or updates `trials`, and replaces the sweep of that name by `sweep`. Former members are
  /// kept as such, as are `trials` that are not members.
  void record_sweep(const SweepRow& sweep, std::span<const TrialRow> trials, double time);
  void record_trial(const TrialRow& trial);
  /// Stores the text of a sweep file by its digest.
  void record_sweep_text(const std::string& digest, std::string_view text);
  /// `runs` must be absolute. If it is below the database's folder, it is stored relative to that,
  /// so that both can be moved together.
  void record_runs_folder(const std::filesystem::path& runs);

  /// Claims a trial to run it: creates the next attempt if the trial has not changed since
  /// `planned_from`, no attempt is open, and no finished one counts. Numbers and keys of attempts
  /// are never reused. Throws std::invalid_argument for an unknown trial.
  Claim begin_attempt(const NewAttempt& attempt);
  /// Records an attempt found in a runs folder, with its number (rebuild). Returns the existing row
  /// if there is one.
  AttemptRef record_attempt(const protocol::AttemptBegun& attempt, std::int64_t number);
  /// Undoes a claim whose folder was never created.
  void forget_attempt(const AttemptRef& attempt);
  void record_launch(const AttemptRef& attempt, const Launch& launch);
  /// Only the first call counts. A finished or failed event takes precedence.
  void record_ending(const AttemptRef& attempt, const Ending& ending);

 private:
  friend class Store;
  friend internal::Connection& internal::connection_of(const Batch& batch);
  Batch(std::shared_ptr<internal::Connection> connection, std::int64_t serial);
  std::shared_ptr<internal::Connection> connection_;
  std::int64_t serial_ = 0;
};

}  // namespace petlab::results
