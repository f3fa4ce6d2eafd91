#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "orchestrator/planning/blame.h"
#include "orchestrator/records/ingest.h"
#include "protocol/decisions.h"
#include "protocol/events.h"
#include "results/attempt.h"
#include "results/store.h"

namespace petlab::orchestrator {

// A turn of a run's loop, as values: what it found (Turn), and what follows (Changes). Outcomes
// looks and carries out; judge() decides, without a clock, a file or a process. Slots and workers
// change before the transaction, the standing of trials after it.

/// An attempt of this run.
struct TurnAttempt {
  results::AttemptRef attempt;
  std::size_t trial = 0;  // its index in the sweep
  std::string slot;
};

/// What a turn found about this run's attempts.
struct Turn {
  /// A worker has the attempt.
  struct Launched {
    results::AttemptRef attempt;
    results::Launch launch;
  };
  /// A worker reported the end of an attempt.
  struct Reported {
    TurnAttempt of;
    AttemptOver end;
    Verdict verdict = Verdict::none;
    bool asked_to_stop = false;  // petlab had asked it to stop this trial alone
    bool worker_ended = false;   // the worker that had the attempt
    std::string last_lines;      // that the worker printed meanwhile; empty if unknown
  };
  /// A worker ended, and all that it wrote has been read. Its attempts are those that are not over.
  struct Gone {
    std::string slot;
    std::string job;  // Launch::job
    WorkerEnd end;
    EndedWorkerFacts worker;
    std::vector<TurnAttempt> attempts;
    std::vector<UnfinishedAttempt> known;  // about each of them
  };
  /// A claim that will reach no worker.
  struct Unstarted {
    TurnAttempt of;
    bool cancelled = false;
    std::string why;  // if it was not cancelled
  };
  /// New values of validations of a trial.
  struct Validated {
    TurnAttempt of;
    std::vector<protocol::Metric> metrics;
    bool is_over = false;  // the worker has reported its end
  };
  double time = 0;     // seconds since 1970
  bool queue = false;  // workers are jobs of a queue
  std::vector<Launched> launches;
  std::vector<NewEvents> events;
  std::vector<Reported> reported;
  std::vector<Gone> gone;
  std::vector<Unstarted> unstarted;
  std::vector<TurnAttempt> vanished;  // claims of attempts whose checkpoint no longer exists
  std::vector<Validated> validated;
  /// Why not everything could be looked at; null otherwise.
  std::exception_ptr error;
};

/// What follows from a turn, for the database, slots, devices and the schedule.
struct Changes {
  /// An attempt that is over, however it ended. Its trial is planned again after the commit.
  struct End {
    enum class Device {
      unknown,  ///< this end says nothing about it
      works,
      failed,
    };
    enum class Retry {
      usual,
      alone,          ///< it ran with others, and one of them ended the worker
      out_of_memory,  ///< on a device for itself
    };
    enum class WorkerNext {
      continues,
      stops,  ///< after a device error, its process can compute nothing more
      dies,   ///< after a protocol error, nothing that it writes is usable
    };
    TurnAttempt of;
    /// To be recorded; absent if the trial has finished, which its events say.
    std::optional<results::Ending> ending;
    Device device = Device::unknown;
    Retry retry = Retry::usual;
    WorkerNext worker = WorkerNext::continues;
  };
  /// A worker that ended before it began a trial that it was to begin.
  struct WorkerEnded {
    std::string slot;
    std::string job;  // Launch::job
    LaunchBlame blame = LaunchBlame::none;
    std::string how;                         // to_string(WorkerEnd)
    std::string lines;                       // its last ones
    std::optional<TurnAttempt> never_begun;  // the attempt that it should have begun next
  };
  /// A decision of the sweep's rule. It is in the trial's file already.
  struct Stopped {
    std::string trial_id;
    std::size_t trial = 0;
    protocol::Decision decision;
  };
  /// The last step whose validation was judged.
  struct Judged {
    results::AttemptRef attempt;
    std::int64_t step = 0;
  };
  std::vector<WorkerEnded> workers;
  std::vector<End> ends;
  std::vector<TurnAttempt> withdrawn;  // claims to be forgotten
  std::vector<Judged> judged;
  std::vector<Stopped> stopped;
  std::filesystem::path post;  // of these decisions, to be removed after the commit
};

/// Decides how attempts ended and who is to blame.
Changes judge(const Turn& turn);

/// Adds both to the batch.
void store(const Turn& turn, const Changes& changes, const std::filesystem::path& runs,
           Ingest& ingest, results::Batch& batch);

}  // namespace petlab::orchestrator
