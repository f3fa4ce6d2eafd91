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

/// An attempt's last event.
using AttemptOver = std::variant<protocol::Finished, protocol::Failed, protocol::Stopped>;

/// A summary of new lines in an attempt's events.jsonl.
struct IngestUpdate {
  std::optional<protocol::Started> started;
  std::optional<protocol::Progress> progress;       // the last one
  std::optional<results::CheckpointAt> checkpoint;  // the last one
  /// finished, failed or stopped. A worker that breaks the protocol has failed with kind "protocol"
  /// and a reason naming file and line: `…/events.jsonl:7: seq is 9, must be 6`. Its later lines
  /// are ignored, so it may be killed.
  std::optional<AttemptOver> over;
  /// Reports an ignored line after the last event.
  std::string note;
  std::vector<protocol::Metric> validation;  // metrics of the validation split
  std::int64_t lines = 0;
  std::int64_t metrics = 0;
  double last_time = 0;  // `time` of the last line
  bool more = false;     // max_bytes was reached; call again
};

/// New lines of an attempt's events.jsonl, parsed and ready to be stored.
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
  std::vector<results::MetricReport> rows_;  // their series are indices into series_
  std::vector<results::LossReport> losses_;
  double started_time_ = 0;
  double progress_time_ = 0;
  std::int64_t progress_seq_ = -1;
  std::optional<double> over_time_;  // absent for a broken protocol, whose times are unreliable
};

/// Whether an attempt's worker may still be writing events.
enum class Writer {
  /// The file must not become shorter or change; otherwise the worker breaks the protocol.
  alive,
  /// As far as the caller knows, no process writes the file. A power failure may have shortened it
  /// or replaced its last lines by zeros, so it ends at the first zero byte.
  gone,
};

/// Reads attempts' events.jsonl into the database, each event exactly once: rows and the read
/// position are stored in the same transaction. An incomplete last line is left for the next call.
/// A missing file has no events. Use it from the store's thread.
///
/// A worker syncs only checkpoints and the last event, while the database syncs all events read.
/// After a power failure it may therefore have more events than the file: see read_again(). Before
/// look() reports that an attempt finished or failed, it syncs the file, because the worker may not
/// have done so yet.
///
/// Reading has two steps, so that other processes never wait for the database during file reads:
/// look() reads the file, and store() writes rows. If another process stores the same events first,
/// they are still stored once, and both processes report all of them.
class Ingest {
 public:
  static constexpr std::size_t kMaxBytes = std::size_t{16} << 20;

  /// What look() does once it has read that an attempt finished or failed.
  enum class Ends {
    synced,    ///< it syncs the file
    as_found,  ///< nothing: the caller syncs all files at once, or has done so
  };
  /// `store` must outlive this object. `runs` is the runs folder.
  Ingest(results::Store& store, std::filesystem::path runs, Ends ends = Ends::synced);

  /// Declares that the attempt is created in `batch`, so that look() begins at its first event
  /// instead of the position in the database.
  void expect(const results::Batch& batch, const results::AttemptRef& attempt);

  /// Reads the next lines after the previous look: those that begin within `max_bytes`. Pass every
  /// result to store(), in order and in the next batch. Throws results::Error for the database, and
  /// std::runtime_error if the file is unreadable or cannot be synced, or if its writer is gone and
  /// it lacks lines that the database has.
  NewEvents look(const results::AttemptRef& attempt, std::size_t max_bytes = kMaxBytes,
                 Writer writer = Writer::alive);
  /// Adds the events to `batch`, which the caller commits. If that batch is rolled back, look()
  /// reads them again.
  void store(results::Batch& batch, const NewEvents& events);
  /// look() and store(), for a database that no other process waits for.
  IngestUpdate read(results::Batch& batch, const results::AttemptRef& attempt,
                    std::size_t max_bytes = kMaxBytes);

  /// Reads all new events in separate transactions.
  IngestUpdate read_all(const results::AttemptRef& attempt, Writer writer = Writer::alive);

  /// For an attempt whose worker is gone: removes its events from the database and reads the file
  /// from the beginning, in one transaction per 16 MiB. The result is the same as that of a
  /// rebuild.
  IngestUpdate read_again(const results::AttemptRef& attempt);

  /// True if the file lacks events of the database, or has zeros in their place. Throws as look().
  bool is_cut(const results::AttemptRef& attempt);

  /// Frees the memory used for an attempt that is over.
  void forget(const results::AttemptRef& attempt);

 private:
  class File;
  /// How far an attempt's file has been read.
  struct ReadMark {
    std::int64_t size = -1;   // file size at that time; -1: there may be more
    std::int64_t serial = 0;  // of the batch that stores it
    results::Cursor cursor;
  };
  ReadMark mark_at(const results::Cursor& cursor) const;
  IngestUpdate read_rest(const results::AttemptRef& attempt, IngestUpdate all, Writer writer);
  /// Adds a note to the attempt if a complete line follows its last event. The line is ignored.
  void note_what_follows(const File& file, std::int64_t size, NewEvents& events);

  results::Store& store_;
  std::filesystem::path runs_;
  Ends ends_;
  std::unordered_map<std::int64_t, ReadMark> read_marks_;  // by AttemptRef::key
  std::vector<char> buffer_;
};

}  // namespace petlab::orchestrator
