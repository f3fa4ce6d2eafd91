#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include "protocol/events.h"
#include "results/attempt_events.h"
#include "results/store.h"

namespace petlab::orchestrator {

/// What the new lines of one attempt's events.jsonl said.
struct IngestUpdate {
  std::optional<protocol::Started> started;
  std::optional<protocol::Progress> progress;       // the last one
  std::optional<results::CheckpointAt> checkpoint;  // the last one
  /// finished or failed. A worker that breaks the protocol has failed with kind "protocol" and a
  /// reason that names file and line: `…/events.jsonl:7: seq is 9, must be 6`; whatever it writes
  /// then is not read, so it may be ended.
  std::optional<std::variant<protocol::Finished, protocol::Failed>> over;
  /// A line after finished or failed: it is ignored, and this says so.
  std::string note;
  std::vector<protocol::Metric> validation;  // metrics of that split
  std::int64_t lines = 0;
  std::int64_t metrics = 0;
  double last_time = 0;  // `time` of the last line
  bool more = false;     // max_bytes was reached: call again
};

/// The new lines of one attempt's events.jsonl, read and understood, for a transaction to store.
class NewEvents {
 public:
  const IngestUpdate& update() const { return update_; }

 private:
  friend class Ingest;
  friend class EventLines;
  struct SeriesName {
    std::string split, task, name;
    bool operator==(const SeriesName&) const = default;
  };

  results::AttemptRef attempt_;
  IngestUpdate update_;
  results::Cursor before_, after_;
  std::vector<SeriesName> series_;
  std::vector<results::MetricReport> rows_;  // their series are places in series_
  std::vector<results::LossReport> losses_;
  double started_time_ = 0;
  double progress_time_ = 0;
  std::int64_t progress_seq_ = -1;
  std::optional<double> over_time_;  // absent: what a broken protocol says of time is not believed
};

/// Whether an attempt's worker may be writing its events.
enum class Writer {
  /// A file that became shorter or changed breaks the protocol.
  alive,
  /// Nobody writes the file, as far as the caller knows: a power cut may have shortened it, or left
  /// zeros in place of what was written last. The file ends at its first zero byte.
  gone,
};

/// Reads events.jsonl of attempts into the database, each event exactly once: rows and the place up
/// to which the file was read are stored in the same transaction. A last line without its newline
/// is left for the next call. Missing files hold no events. Use from the store's thread.
///
/// A worker syncs only checkpoint, finished and failed, while the database syncs everything that it
/// has read. So after a power cut it may have more events than the file: see read_again().
///
/// Two steps, so that no file is read while other processes wait for the database: look() reads the
/// file, store() writes rows. Another process may store the same events between the two, or
/// earlier: they are stored once, and both hear of all of them.
class Ingest {
 public:
  static constexpr std::size_t kMaxBytes = std::size_t{16} << 20;

  /// `store` must live longer. `runs` is the folder of the trials' directories.
  Ingest(results::Store& store, std::filesystem::path runs);

  /// Says that the attempt is made in `batch`, so that look() begins at its first event; else it
  /// begins where the database is.
  void expect(const results::Batch& batch, const results::AttemptRef& attempt);

  /// Reads the lines that begin in the next `max_bytes` behind those of the look before. All that
  /// it gives goes to store(), in its order and in the next batch. Throws results::Error for the
  /// database and std::runtime_error where a file is there but cannot be read, and where its writer
  /// is gone and the file lacks lines that the database has.
  NewEvents look(const results::AttemptRef& attempt, std::size_t max_bytes = kMaxBytes,
                 Writer writer = Writer::alive);
  /// Writes what look() gave into `batch`; the caller commits. After a batch that is not committed
  /// look() finds it again.
  void store(results::Batch& batch, const NewEvents& events);
  /// Both, for a database that nobody else waits for.
  IngestUpdate read(results::Batch& batch, const results::AttemptRef& attempt,
                    std::size_t max_bytes = kMaxBytes);

  /// All that is new, in transactions of its own.
  IngestUpdate read_all(const results::AttemptRef& attempt, Writer writer = Writer::alive);

  /// Of an attempt whose worker is gone: removes everything that was read of its events and reads
  /// the file from its beginning, in one transaction (in several where it has more than 16 MiB).
  /// The database then has what a rebuild from the files would have.
  IngestUpdate read_again(const results::AttemptRef& attempt);

  /// True if the file lacks events that the database has, or holds zeros there. Throws as look().
  bool is_cut(const results::AttemptRef& attempt);

  /// Forgets what is remembered in memory of an attempt that is over.
  void forget(const results::AttemptRef& attempt);

 private:
  class File;
  /// How far an attempt's file was read.
  struct ReadMark {
    std::int64_t size = -1;   // of the file then; -1: there may be more
    std::int64_t serial = 0;  // of the batch in which that was stored
    results::Cursor cursor;
  };
  ReadMark mark_at(const results::Cursor& cursor) const;
  IngestUpdate read_rest(const results::AttemptRef& attempt, IngestUpdate all, Writer writer);
  /// A complete line after the end is ignored, and noted with the attempt.
  void note_what_follows(const File& file, std::int64_t size, NewEvents& events);

  results::Store& store_;
  std::filesystem::path runs_;
  std::unordered_map<std::int64_t, ReadMark> read_marks_;  // by AttemptRef::key
  std::vector<char> buffer_;
};

}  // namespace petlab::orchestrator
