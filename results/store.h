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
#include <utility>
#include <variant>
#include <vector>

#include "protocol/events.h"
#include "protocol/remarks.h"
#include "results/attempt.h"
#include "results/error.h"

namespace petlab::results {

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

/// Names of metrics are stored once; this is the number of one in one database.
struct Series {
  std::int64_t key = 0;
};

/// One `metric` event, ready to be stored.
struct MetricRow {
  std::int64_t seq = 0;
  std::int64_t step = 0;
  Series series;
  std::optional<double> value;
};

/// What one `progress` event says of the loss.
struct LossReport {
  std::int64_t seq = 0;
  std::int64_t step = 0;
  std::optional<double> loss;  // the mean since the event before; absent: not finite
};

/// How far an attempt's events.jsonl was read.
struct Cursor {
  std::int64_t offset = 0;    // bytes, at the beginning of a line
  std::int64_t next_seq = 0;  // what the next line must say
  std::int64_t lines = 0;     // lines before offset
  bool closed = false;        // finished, failed or a broken protocol: nothing more counts
  bool broken = false;        // the line at offset broke the protocol
  bool operator==(const Cursor&) const = default;
};

struct OpenOptions {
  /// How long a write waits for other processes' writes before it is an Error.
  std::chrono::milliseconds busy_timeout = std::chrono::minutes(2);
  /// Each commit is on the disk when it returns (synchronous=FULL). Without, a power cut may take
  /// back the last commits; a killed process never does. Files of the runs folder hold all of it.
  bool synced = true;
  /// automatic: rollback on a network file system, where one process at a time may write (it holds
  /// `<database>.lock`); WAL elsewhere.
  enum class Journal { automatic, wal, rollback };
  Journal journal = Journal::automatic;
};

class Batch;
struct RemarkSubject;
struct Remarks;
namespace internal {
class Connection;
class HostLock;
}  // namespace internal

/// Reads a petlab database; also while others write it. Each call sees one state of it. Use from
/// one thread at a time. Throws results::Error.
class Reader {
 public:
  /// Throws Error for a file that is missing, no petlab database, or of another version. Whoever
  /// opens or closes a database last killed holds it alone for a moment: a read waits that long.
  explicit Reader(const std::filesystem::path& database,
                  std::chrono::milliseconds busy_timeout = OpenOptions().busy_timeout);
  ~Reader();
  Reader(Reader&&) noexcept;
  Reader& operator=(Reader&&) noexcept;

  /// In the order of `trial_ids`; unknown ones have known == false.
  std::vector<TrialFacts> trial_facts(std::span<const std::string> trial_ids) const;
  /// Every attempt whose outcome is open.
  std::vector<AttemptFacts> open_attempts() const;
  /// std::nullopt where there is none.
  std::optional<AttemptFacts> attempt_facts(const std::string& trial_id, std::int64_t number) const;
  /// Trials that are cancelled, were allowed a retry or are to be made again.
  std::vector<Decided> decided() const;
  /// Where an attempt's numbers come from; empty texts where nobody said.
  Provenance provenance(const AttemptRef& attempt) const;
  /// The sweep file of that digest, as it was run; std::nullopt where it is not known.
  std::optional<std::string> sweep_text(const std::string& digest) const;
  /// What the user said of a trial's results.
  Care care(const std::string& trial_id) const;
  /// The last progress of every open attempt.
  std::vector<ProgressFacts> progress() const;
  /// The metrics of split `validation` that an attempt has reported from `from_seq` on, in its
  /// order; from_seq is set behind the last.
  std::vector<protocol::Metric> validation_metrics(const AttemptRef& attempt,
                                                   std::int64_t& from_seq) const;
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
  /// Of an attempt that was forgotten it is closed.
  Cursor cursor(const AttemptRef& attempt) const;
  /// Differs from an earlier value when another process has written since; costs microseconds.
  std::int64_t data_version() const;

 private:
  friend class Store;
  friend class OneState;
  friend Remarks remarks_of(const Reader& reader, const RemarkSubject& subject);
  friend std::vector<std::pair<std::string, std::int64_t>> all_tags(const Reader& reader);
  explicit Reader(std::shared_ptr<internal::Connection> connection);
  std::shared_ptr<internal::Connection> connection_;
};

/// The database, opened for writing: made where there is none. Several processes may write to one;
/// each waits for the others. Use from one thread at a time, one Batch at a time.
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
  /// Throws std::invalid_argument for a trial that was not recorded, as does allow_retry.
  void set_cancelled(const std::string& trial_id, bool cancelled);
  /// Attempts up to this one no longer count against the limit of failures, and a later finished
  /// attempt takes their place in the views.
  void allow_retry(const std::string& trial_id, std::int64_t after_attempt);
  /// The same, also where one of them has finished: the trial is to be made again, and may be
  /// claimed. A result of theirs counts until a later one is there or, where it is discarded, not
  /// any more. Nothing is deleted.
  void renew(const std::string& trial_id, const Renewal& renewal);
  /// Takes a trial out of the views and of what is asked of results, or back in (no `hiding`).
  void set_hidden(const std::string& trial_id, const std::optional<Hiding>& hiding);

  // For the ingest (orchestrator/records/ingest.h), which is the only caller.
  Series series(std::string_view split, std::string_view task, std::string_view name);
  void append_metrics(const AttemptRef& attempt, std::span<const MetricRow> rows);
  void record_started(const AttemptRef& attempt, const protocol::Started& started, double time);
  /// The last progress, and of each since the call before its loss (loss_curve.h).
  void record_progress(const AttemptRef& attempt, const protocol::Progress& progress, double time,
                       std::span<const LossReport> losses = {});
  void record_checkpoint(const AttemptRef& attempt, const CheckpointAt& checkpoint);
  void record_finished(const AttemptRef& attempt, const protocol::Finished& finished, double time);
  /// Without a time where the events do not tell one.
  void record_failed(const AttemptRef& attempt, const protocol::Failed& failed,
                     std::optional<double> time);
  void record_note(const AttemptRef& attempt, std::string_view note);
  void set_cursor(const AttemptRef& attempt, const Cursor& cursor);

 private:
  friend class Store;
  friend void record_remark(Batch& batch, const RemarkSubject& subject,
                            const protocol::Remark& remark);
  Batch(std::shared_ptr<internal::Connection> connection, std::int64_t serial);
  template <typename Body>
  auto write(std::string_view doing, Body&& body);
  std::shared_ptr<internal::Connection> connection_;
  std::int64_t serial_ = 0;
};

}  // namespace petlab::results
