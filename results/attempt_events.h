#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "protocol/events.h"
#include "results/store.h"

namespace petlab::results {

// What a worker says of its attempt, as the ingest (orchestrator/records/ingest.h) stores it and
// others read it. All of it throws Error as the methods of Batch and Reader.

/// Names of metrics are stored once; this is the number of one in one database.
struct Series {
  std::int64_t key = 0;
};

/// What one `metric` event says, ready to be stored.
struct MetricReport {
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

/// The last `progress` of an attempt.
struct ProgressFacts {
  AttemptRef attempt;
  std::int64_t step = 0;
  std::int64_t of = 0;
  std::optional<double> loss;
  double time = 0;
};

/// The number of a metric's name, which is made where there is none.
Series series_in(Batch& batch, std::string_view split, std::string_view task,
                 std::string_view name);
void append_metrics(Batch& batch, const AttemptRef& attempt, std::span<const MetricReport> rows);
void record_started(Batch& batch, const AttemptRef& attempt, const protocol::Started& started,
                    double time);
/// The last progress, and of each since the call before its loss (loss_curve.h).
void record_progress(Batch& batch, const AttemptRef& attempt, const protocol::Progress& progress,
                     double time, std::span<const LossReport> losses = {});
void record_checkpoint(Batch& batch, const AttemptRef& attempt, const CheckpointAt& checkpoint);
void record_finished(Batch& batch, const AttemptRef& attempt, const protocol::Finished& finished,
                     double time);
/// Without a time where the events do not tell one.
void record_failed(Batch& batch, const AttemptRef& attempt, const protocol::Failed& failed,
                   std::optional<double> time);
void record_note(Batch& batch, const AttemptRef& attempt, std::string_view note);
void set_cursor(Batch& batch, const AttemptRef& attempt, const Cursor& cursor);
/// Removes everything that the functions above have recorded of an attempt and puts its cursor at
/// the beginning of the file. What an orchestrator recorded (begun, launch, ending) stays.
void forget_events(Batch& batch, const AttemptRef& attempt);

/// Of an attempt that was forgotten it is closed.
Cursor cursor_of(const Reader& reader, const AttemptRef& attempt);
/// The last progress of every open attempt.
std::vector<ProgressFacts> open_progress(const Reader& reader);
/// The metrics of split `validation` that an attempt has reported from `from_seq` on, in its order;
/// from_seq is set behind the last.
std::vector<protocol::Metric> validation_metrics(const Reader& reader, const AttemptRef& attempt,
                                                 std::int64_t& from_seq);

}  // namespace petlab::results
