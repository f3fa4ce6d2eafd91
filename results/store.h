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

/// PRAGMA user_version of the databases that this petlab writes. It alone says what tables,
/// columns, triggers and views a database has (docs/reference/database.md).
inline constexpr std::int32_t kDatabaseVersion = 2;

/// A trial as a plan knows it.
struct TrialRow {
  std::string trial_id;
  std::string config;           // JSON object as text: sweeps::to_json(config).dump()
  std::string backbone_digest;  // "sha256:…", may be empty
  std::optional<double> bls_bits;
  std::optional<std::int64_t> stored_bits;
  bool operator==(const TrialRow&) const = default;
};

/// A sweep as it was expanded last; the name is its identity in a database.
struct SweepRow {
  struct Member {
    std::string trial_id;
    std::string variant;  // empty: the sweep has no variants
    bool operator==(const Member&) const = default;
  };
  std::string name;
  std::string about;
  std::string file;
  std::string digest;
  std::vector<Member> members;  // a trial may have several variants: one member each
  /// `training.epochs=1`: what was set beside the file, for every trial.
  std::vector<std::string> overrides = {};
  std::string text = {};  // of the file; empty: not known. Kept by digest (Reader::sweep_text)
  bool operator==(const SweepRow&) const = default;
};

/// The trials of a sweep, those that are in the same state put together.
struct SweepOutline {
  /// Trials that differ in nothing that says what state they are in: one of them, and how many.
  struct Alike {
    std::string trial_id;
    std::int64_t trials = 0;
  };
  std::int64_t trials = 0;
  /// Never tried, or with a result and no open attempt: by cancelled, or by what made the result.
  std::vector<Alike> alike;
  std::vector<std::string> others;  // each to be looked at by itself, sorted
  std::int64_t discarded = 0;       // of all trials: their last result was, and none is there since
  std::int64_t hidden = 0;          // of all trials
};

/// Nothing was claimed: another orchestrator runs the trial, or something happened to it since the
/// caller looked, or it was cancelled, or it has a result that nobody asked to be made again.
struct Taken {
  std::int64_t latest = 0;  // the highest attempt number there is
  bool open = false;        // and it is not over
  bool cancelled = false;   // the user took the trial out
  bool finished = false;    // after the last decision to retry it
  std::string owner;
  std::string host;
};
using Claim = std::variant<AttemptRef, Taken>;

struct OpenOptions {
  /// How long a write waits for other processes' writes before it is an Error.
  std::chrono::milliseconds busy_timeout = std::chrono::minutes(2);
  /// Each commit is on the disk when it returns (synchronous=FULL). Without, a power cut may take
  /// back the last commits; a killed process never does. Files of the runs folder hold all of it.
  bool synced = true;
  /// No other connection opens it, and whoever made it syncs it when it is whole: nothing is locked
  /// and nothing synced meanwhile.
  bool alone = false;
  /// automatic: rollback on a network file system, where one process at a time may write (it holds
  /// `<database>.lock`); WAL elsewhere.
  enum class Journal { automatic, wal, rollback };
  Journal journal = Journal::automatic;
};

class Batch;
class Reader;
namespace internal {
class Connection;
class HostLock;
// What the functions on a Batch or a Reader work with.
Connection& connection_of(const Batch& batch);
Connection& connection_of(const Reader& reader);
}  // namespace internal

/// Reads a petlab database; also while others write it. Each call sees one state of it. Use from
/// one thread at a time. Throws results::Error. What the user decided and remarked, and how far
/// workers have come, is read by the functions of decisions.h, remarks.h and attempt_events.h.
class Reader {
 public:
  /// Reads a database of an earlier version through an updated copy. Throws Error for a file that
  /// is missing, no petlab database, or of a newer version. Whoever opens or closes a database last
  /// killed holds it alone for a moment: a read waits that long.
  explicit Reader(const std::filesystem::path& database,
                  std::chrono::milliseconds busy_timeout = OpenOptions().busy_timeout);
  ~Reader();
  Reader(Reader&&) noexcept;
  Reader& operator=(Reader&&) noexcept;

  /// In the order of `trial_ids`; unknown ones have known == false.
  std::vector<TrialFacts> trial_facts(std::span<const std::string> trial_ids) const;
  /// Every attempt whose outcome is open.
  std::vector<AttemptFacts> open_attempts() const;
  /// Every attempt that an orchestrator began.
  std::vector<AttemptFacts> attempts_of_owner(const std::string& owner) const;
  /// std::nullopt where there is none.
  std::optional<AttemptFacts> attempt_facts(const std::string& trial_id, std::int64_t number) const;
  /// Where an attempt's numbers come from; empty texts where nobody said.
  Provenance provenance(const AttemptRef& attempt) const;
  /// The sweep file of that digest, as it was run; std::nullopt where it is not known.
  std::optional<std::string> sweep_text(const std::string& digest) const;
  /// The sweep of that name; std::nullopt where there is none.
  std::optional<SweepRow> sweep(const std::string& name) const;
  /// Those trials that have a result and are members of the sweep, or were once.
  std::vector<std::string> finished_members(const std::string& sweep) const;
  /// The runs folder of this database as record_runs_folder() was told it, below the database's own
  /// folder as that lies now; std::nullopt where none was.
  std::optional<std::filesystem::path> runs_folder() const;
  /// Calls `take` with each member of a sweep that is not hidden, in its order, in one pass over
  /// the database.
  void each_member(const std::string& sweep,
                   const std::function<void(const SweepRow::Member&, const TrialRow&,
                                            const TrialFacts&)>& take) const;
  /// What the states of a sweep's trials follow from, without every trial's attempts; nothing where
  /// there is no such sweep.
  SweepOutline outline(const std::string& sweep) const;
  /// The variants under which a sweep names a trial, in its order.
  std::vector<std::string> variants(const std::string& sweep, const std::string& trial_id) const;
  /// Names of the sweeps, in the order in which they came first.
  std::vector<std::string> sweep_names() const;
  /// Configuration (JSON text) of a trial; std::nullopt where there is none.
  std::optional<TrialRow> trial(const std::string& trial_id) const;
  /// Trial ids that begin with `prefix`, at most `limit` (what a user typed).
  std::vector<std::string> trials_with_prefix(const std::string& prefix, int limit) const;
  /// Differs from an earlier value when another process has written since; costs microseconds.
  std::int64_t data_version() const;

 private:
  friend class Store;
  friend class OneState;
  friend class ScoreReader;
  friend internal::Connection& internal::connection_of(const Reader& reader);
  explicit Reader(std::shared_ptr<internal::Connection> connection);
  std::shared_ptr<internal::Connection> connection_;
};

/// The database, opened for writing: made where there is none, and updated where it has an earlier
/// version. Several processes may write to one; each waits for the others. Use from one thread at a
/// time, one Batch at a time.
class Store {
 public:
  /// Throws Error: folder missing or not writable, no petlab database, too old or too new a
  /// version, disk full, locked for longer than busy_timeout. The message names the file and what
  /// to do.
  explicit Store(const std::filesystem::path& database, const OpenOptions& options = {});
  ~Store();
  Store(Store&&) noexcept;
  Store& operator=(Store&&) noexcept;

  const std::filesystem::path& file() const;
  /// True where nobody else can have the database open to write: it is on a network file system.
  bool alone() const;
  /// The same connection: also sees what the running batch has written.
  const Reader& read() const;
  /// Starts a transaction; waits for other writers.
  Batch begin();
  /// Serial number of the last batch that was committed; 0 before the first.
  std::int64_t last_committed() const;
  /// Serial number of the last batch that was not committed; 0 where there was none.
  std::int64_t last_rolled_back() const;

 private:
  std::unique_ptr<internal::HostLock> lock_;  // released after the connection is closed
  std::shared_ptr<internal::Connection> connection_;
  Reader reader_;
};

/// One transaction: all of it is stored by commit(), or nothing. Many changes in one batch cost
/// little more than one. Every call throws Error where the database cannot be written; then the
/// batch is over and only its destruction is allowed.
///
/// Its methods write what an orchestrator says: trials, sweeps, and attempts from the claim to the
/// end. What a worker says is written by the functions of attempt_events.h, what the user says by
/// those of decisions.h and remarks.h.
class Batch {
 public:
  ~Batch();  // rolls back what was not committed
  Batch(Batch&&) noexcept;
  Batch& operator=(Batch&&) = delete;

  std::int64_t serial() const { return serial_; }
  /// Throws Error, then nothing was stored. Also where the database file was deleted or replaced.
  void commit();

  /// Adds trials that are not there yet (what is there stays) and makes `sweep` what is given.
  /// Members that it had before are former ones then, and so are `trials` that are no members.
  void record_sweep(const SweepRow& sweep, std::span<const TrialRow> trials, double time);
  void record_trial(const TrialRow& trial);
  /// Keeps the text of a sweep file under its digest.
  void record_sweep_text(const std::string& digest, std::string_view text);
  /// `runs` is absolute. Below the folder of the database it is remembered relative to that, so
  /// that both can be moved together.
  void record_runs_folder(const std::filesystem::path& runs);

  /// Takes a trial to run it: makes the next attempt where nothing has happened to the trial since
  /// `planned_from`, no attempt is open, and none that finished stands. Neither the number nor the
  /// key of an attempt is ever given again. Throws std::invalid_argument for a trial that was not
  /// recorded.
  Claim begin_attempt(const NewAttempt& attempt);
  /// An attempt known from its directory, whatever its number (rebuild); the same row if it exists.
  AttemptRef record_attempt(const protocol::AttemptBegun& attempt, std::int64_t number);
  /// Takes a claim back whose directory was never made.
  void forget_attempt(const AttemptRef& attempt);
  void record_launch(const AttemptRef& attempt, const Launch& launch);
  /// The first one counts; finished and failed of the events stay.
  void record_ending(const AttemptRef& attempt, const Ending& ending);

 private:
  friend class Store;
  friend internal::Connection& internal::connection_of(const Batch& batch);
  Batch(std::shared_ptr<internal::Connection> connection, std::int64_t serial);
  std::shared_ptr<internal::Connection> connection_;
  std::int64_t serial_ = 0;
};

}  // namespace petlab::results
