#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include "results/store.h"
#include "sweeps/events.h"

namespace petlab::orchestrator {

/// What the new lines of one attempt's events.jsonl said.
struct IngestUpdate {
  std::optional<sweeps::Started> started;
  std::optional<sweeps::Progress> progress;         // the last one
  std::optional<results::CheckpointAt> checkpoint;  // the last one
  /// finished or failed. A worker that breaks the protocol has failed with kind "protocol" and a
  /// reason that names file and line: `…/events.jsonl:7: seq is 9, must be 6`; whatever it writes
  /// then is not read, so it may be ended.
  std::optional<std::variant<sweeps::Finished, sweeps::Failed>> over;
  /// A line after finished or failed: it is ignored, and this says so.
  std::string note;
  std::vector<sweeps::Metric> validation;  // metrics of that split
  std::int64_t lines = 0;
  std::int64_t metrics = 0;
  double last_time = 0;  // `time` of the last line
  bool more = false;     // max_bytes was reached: call again
};

/// Reads events.jsonl of attempts into the database, each event exactly once: rows and the place up
/// to which the file was read are stored in the same transaction. A last line without its newline
/// is left for the next call. Missing files hold no events. Use from the store's thread.
class Ingest {
 public:
  /// `store` must live longer. `runs` is the folder of the trials' directories.
  Ingest(results::Store& store, std::filesystem::path runs);

  /// Reads the lines that begin in the next `max_bytes` into `batch`; the caller commits. A batch
  /// that is not committed is as if it was never read. Throws results::Error for the database and
  /// std::runtime_error where a file is there but cannot be read.
  IngestUpdate read(results::Batch& batch, const results::AttemptRef& attempt,
                    std::size_t max_bytes = std::size_t{16} << 20);

  /// All that is new, in transactions of its own.
  IngestUpdate read_all(const results::AttemptRef& attempt);

  /// Forgets what is remembered in memory of an attempt that is over.
  void forget(const results::AttemptRef& attempt);

 private:
  class File;
  /// The file's size when it was read, and in which batch: where both still hold, nothing is new.
  struct Seen {
    std::int64_t size = -1;
    std::int64_t serial = 0;
  };
  /// A complete line after the end is ignored, and noted with the attempt.
  void note_what_follows(results::Batch& batch, const results::AttemptRef& attempt,
                         const File& file, std::int64_t size, const results::Cursor& cursor,
                         IngestUpdate& update);

  results::Store& store_;
  std::filesystem::path runs_;
  std::unordered_map<std::int64_t, Seen> seen_;  // by AttemptRef::key
  std::vector<char> buffer_;
  std::vector<results::MetricRow> rows_;
};

}  // namespace petlab::orchestrator
