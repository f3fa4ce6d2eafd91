#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <variant>

#include "results/attempt.h"

namespace petlab::orchestrator {

/// How a worker's process ended.
struct Exited {
  int code = 0;
};
struct Killed {
  int signal = 0;
};
/// Taken away from outside: cancelled or preempted in Slurm, its node lost, forgotten. Says nothing
/// about its trial.
struct TakenAway {
  std::string why;
};
/// The time that the queue gives a job was over.
struct OutOfTime {
  std::string why;
};
/// The queue will not take it, however often it is asked.
struct Refused {
  std::string why;
};
struct WorkerEnd {
  std::variant<Exited, Killed, TakenAway, OutOfTime, Refused> how;
  /// The last lines of its output, valid UTF-8; empty where it said nothing.
  std::string last_lines;
  /// The last lines of each attempt whose output is known, by its log.txt.
  std::map<std::filesystem::path, std::string> lines_by_log = {};
};
/// "exit code 3", "signal 9 (Killed)", or why.
std::string to_string(const WorkerEnd& end);

/// A running worker. Destroying it ends and reaps its whole process group at once.
class Worker {
 public:
  virtual ~Worker() = default;
  /// Hands over one more attempt; only where the launcher's workers stay for several.
  virtual void submit(const std::filesystem::path& attempt_folder) = 0;
  /// No more attempts will come: the worker ends after those that it has.
  virtual void close() = 0;
  /// The worker is at the attempt of this log.txt. Unless it announces its attempts itself
  /// (docs/reference/worker-protocol.md), what it prints from here on belongs there; what it
  /// printed so far is written to the earlier one first.
  virtual void log_to(const std::filesystem::path& log) = 0;
  /// The last lines that it printed while it was at the attempt of this log.txt, valid UTF-8; empty
  /// where that is not known.
  virtual std::string last_lines(const std::filesystem::path& log) = 0;
  /// Asks it to write a checkpoint and end (SIGTERM to its group).
  virtual void stop() = 0;
  /// Ends its group at once (SIGKILL); the end is reported as any other.
  virtual void kill() = 0;
  /// pid, pid_start and host of the process, for the record.
  virtual const results::Launch& launch() const = 0;
  /// True while it waits in a queue, or is suspended: no time of its trial runs.
  virtual bool waits() const { return false; }
  /// True where that is because it is suspended.
  virtual bool suspended() const { return false; }
  /// When its trial began, by the clock of the limits: by what a queue says of its job, also of one
  /// that an earlier orchestrator handed in. Absent: not known.
  virtual std::optional<std::chrono::steady_clock::time_point> began() const {
    return std::nullopt;
  }
};

/// What a slot is wanted for, where workers share devices.
struct SlotRequest {
  std::optional<std::int64_t> memory_mib = std::nullopt;  // absent: all that a device has
  bool whole_device = false;                              // nobody else may join
  bool first = true;  // it is for the first trial in line: the others must not take its room
  /// Devices (SlotDevice::uuid) on which the trial failed: not to be used where there are others.
  std::set<std::string> avoided = {};
};

/// How a launcher is to use a device.
enum class DeviceUse {
  usual,
  last,   ///< only where no other is free: trials failed there
  never,  ///< no new slots there: it is disabled for the run
};

/// What became of a wish for another reservation.
enum class Resized {
  done,
  no_room,  ///< the slot keeps what it had
  busy,     ///< another petlab changes the device's shares right now: to be asked again
};

/// A slot's share of a device.
struct DeviceShare {
  std::int64_t memory_mib = 0;  // reserved for the slot
  bool kept = false;            // the device is kept for another: no more trials for this slot
};

/// Where a slot's worker computes, as trial.json says it.
struct SlotDevice {
  std::string kind;             // "cpu", "cuda", "rocm"
  std::string uuid;             // of the GPU; empty: none, or not known
  std::int64_t memory_mib = 0;  // reserved for the slot; 0: not known
};

/// What a launcher can do besides whose slots are shares of devices.
class SharedDevices {
 public:
  virtual ~SharedDevices() = default;
  /// As Launcher::acquire_slot(), of a device that has room for the request.
  virtual std::optional<std::string> acquire_share(const SlotRequest& request) = 0;
  virtual DeviceShare share(const std::string& slot) const = 0;
  /// Notes what a slot's worker said that it holds, at the trial that it is at; 0: it has said
  /// nothing yet. No less than that is reserved.
  virtual void report_memory(const std::string& slot, std::int64_t reported_mib) = 0;
  /// Changes what is reserved for a slot.
  virtual Resized resize_share(const std::string& slot, std::int64_t reserved_mib) = 0;
  /// Most memory that one worker can have.
  virtual std::int64_t largest_share_mib() const = 0;
  /// After acquire_share() found no room: the most memory that a share could have had.
  virtual std::int64_t room_mib() const = 0;
};

/// What a launcher can do besides whose workers are jobs of a queue that outlives this process.
/// There Launcher::start() only notes a job and flush() hands it in; it may wait; Worker::launch()
/// is complete when on_launch says so; a destroyed Worker leaves its job as it is, for the next
/// orchestrator to adopt.
class JobQueue {
 public:
  virtual ~JobQueue() = default;
  /// Called at the end of each turn.
  virtual void flush() = 0;
  /// Called from the loop with the slot of a worker whose launch() has changed.
  virtual void on_launch(std::function<void(const std::string& slot)> changed) = 0;
  /// What the job of an attempt noted of itself: job and host, where it has begun.
  virtual std::optional<results::Launch> noted(
      const std::filesystem::path& attempt_folder) const = 0;
  /// As Launcher::start(), for an attempt that a dead orchestrator had claimed: its job goes on.
  /// Where nobody noted a job it is looked for, and handed in where there is none.
  virtual std::unique_ptr<Worker> adopt(const std::string& slot,
                                        const std::filesystem::path& attempt_folder,
                                        const results::AttemptFacts& facts,
                                        std::function<void(WorkerEnd)> on_end) = 0;
  /// Removes what dead orchestrators left of files of this launcher: `ended` is true for their
  /// names.
  virtual void remove_left(const std::function<bool(const std::string& owner)>& ended) = 0;
};

/// Where workers run. All calls and callbacks happen on the thread of the run's event loop.
class Launcher {
 public:
  virtual ~Launcher() = default;
  /// Takes a free slot and returns its name ("cpu-3"); std::nullopt: none is free now. Throws
  /// Error.
  virtual std::optional<std::string> acquire_slot() = 0;
  /// Why no slot is free, for people; empty where there is nothing to say.
  virtual std::string why_no_slot() const { return {}; }
  /// Gives a slot back; its worker must be gone.
  virtual void release_slot(const std::string& slot) = 0;
  virtual SlotDevice device(const std::string& slot) const = 0;
  /// From now on the device (SlotDevice::uuid, or the host of a job) is used so.
  virtual void use_device(const std::string& device, DeviceUse use) = 0;
  /// How many devices slots can be on; 1 where they are not told apart.
  virtual std::size_t devices() const { return 1; }
  /// Starts a worker in a slot with its first attempt. `on_end` is called once, from the loop, when
  /// the process is gone and all of its output is written; never from inside start(). Throws Error
  /// where the program cannot be started.
  virtual std::unique_ptr<Worker> start(const std::string& slot,
                                        const std::filesystem::path& attempt_folder,
                                        std::function<void(WorkerEnd)> on_end) = 0;
  /// True: a worker takes further attempts by submit().
  virtual bool workers_stay() const = 0;
  /// What attempts.launcher says.
  virtual std::string kind() const = 0;

  /// Where slots are shares of devices, and taken by acquire_share(); nullptr: they are not.
  virtual SharedDevices* shared_devices() { return nullptr; }
  /// Where workers are jobs; nullptr: they are processes that end with this one.
  virtual JobQueue* queue() { return nullptr; }
};

}  // namespace petlab::orchestrator
