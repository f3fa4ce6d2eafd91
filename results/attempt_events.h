#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/events.h"
#include "results/store.h"

namespace petlab::results {

// Workers' reports, as stored by the ingest (orchestrator/records/ingest.h) and read by others. All
// functions throw Error as the methods of Batch and Reader.

/// The key of a metric's name, which each database stores once.
struct Series {
  std::int64_t key = 0;
};

/// A `metric` event, ready to be stored.
struct MetricReport {
  std::int64_t seq = 0;
  std::int64_t step = 0;
  Series series;
  std::optional<double> value;
};

/// The loss of a `progress` event.
struct LossReport {
  std::int64_t seq = 0;
  std::int64_t step = 0;
  std::optional<double> loss;  // mean since the previous event; absent if not finite
};

/// How far an attempt's events.jsonl has been read.
struct Cursor {
  std::int64_t offset = 0;    // in bytes; the start of a line
  std::int64_t next_seq = 0;  // expected in the next line
  std::int64_t lines = 0;     // lines before offset
  bool closed = false;        // finished, failed or a broken protocol; later lines do not count
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

/// The key of a metric's name, which is added if it is new.
Series series_in(Batch& batch, std::string_view split, std::string_view task,
                 std::string_view name);
void append_metrics(Batch& batch, const AttemptRef& attempt, std::span<const MetricReport> rows);
void record_started(Batch& batch, const AttemptRef& attempt, const protocol::Started& started,
                    double time);
/// Stores the last progress, and the losses since the previous call (loss_curve.h).
void record_progress(Batch& batch, const AttemptRef& attempt, const protocol::Progress& progress,
                     double time, std::span<const LossReport> losses = {});
void record_checkpoint(Batch& batch, const AttemptRef& attempt, const CheckpointAt& checkpoint);
void record_finished(Batch& batch, const AttemptRef& attempt, const protocol::Finished& finished,
                     double time);
/// `time` is absent if the events do not contain it. Invariant of both: the attempt has not ended.
void record_failed(Batch& batch, const AttemptRef& attempt, const protocol::Failed& failed,
                   std::optional<double> time);
void record_note(Batch& batch, const AttemptRef& attempt, std::string_view note);
/// Invariant: the cursor does not go back, and nothing was read after a closed one.
void set_cursor(Batch& batch, const AttemptRef& attempt, const Cursor& cursor);
/// Removes everything recorded by the functions above, and resets the attempt's cursor. Keeps the
/// orchestrator's records (begun, launch, ending).
void forget_events(Batch& batch, const AttemptRef& attempt);

/// Closed for a forgotten attempt.
Cursor cursor_of(const Reader& reader, const AttemptRef& attempt);
/// The last progress of every open attempt.
std::vector<ProgressFacts> open_progress(const Reader& reader);
/// The attempt's metrics of split `validation` with seq >= `from_seq`, in order. Sets `from_seq` to
/// one above the last.
std::vector<protocol::Metric> validation_metrics(const Reader& reader, const AttemptRef& attempt,
                                                 std::int64_t& from_seq);

/// Notes that the attempt's validations up to this step were judged by a rule of its sweep.
void record_judged(Batch& batch, const AttemptRef& attempt, std::int64_t step);

/// A metric of split `validation`.
struct Validation {
  const std::string& trial_id;
  AttemptRef attempt;
  protocol::Metric metric;
  bool judged = false;           ///< see record_judged()
  std::int64_t resume_step = 0;  ///< from which the attempt resumed; 0: from the beginning
};
/// Calls `take` with all of the sweep's trials: those of a trial one after another, by attempt, in
/// order. Attempts whose results are to be recomputed are left out.
void each_validation(const Reader& reader, const std::string& sweep,
                     const std::function<void(const Validation&)>& take);

}  // namespace petlab::results
