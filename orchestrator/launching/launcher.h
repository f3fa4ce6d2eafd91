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
#include <vector>

#include "results/attempt.h"

namespace petlab::orchestrator {

/// How a worker's process ended.
struct Exited {
  int code = 0;
};
struct Killed {
  int signal = 0;
};
/// The worker was taken away: cancelled or preempted in Slurm, its node lost, or the job unknown to
/// Slurm. This is no evidence against its trial.
struct TakenAway {
  std::string why;
};
/// The job reached its time limit in the queue.
struct OutOfTime {
  std::string why;
};
/// Rejected permanently by the queue.
struct Refused {
  std::string why;
};
struct WorkerEnd {
  std::variant<Exited, Killed, TakenAway, OutOfTime, Refused> how;
  /// The last lines of its output, valid UTF-8; empty if it printed nothing.
  std::string last_lines;
  /// The last lines of each attempt whose output is known, by its log.txt.
  std::map<std::filesystem::path, std::string> lines_by_log = {};
};
/// "exit code 3", "signal 9 (Killed)", or the reason.
std::string to_string(const WorkerEnd& end);

/// A running worker. Destroying it kills and reaps its whole process group; a job in a queue keeps
/// running.
class Worker {
 public:
  virtual ~Worker() = default;
  /// Gives the worker another attempt, or several to train together. Only if
  /// Launcher::workers_stay().
  virtual void submit(const std::vector<std::filesystem::path>& attempt_folders) = 0;
  /// Announces that no more attempts follow: the worker ends after those it has.
  virtual void close() = 0;
  /// Sends the worker's output to this log.txt from now on, unless the worker announces its
  /// attempts itself (docs/reference/worker-protocol.md). Earlier output is first written to the
  /// previous log.
  virtual void log_to(const std::filesystem::path& log) = 0;
  /// The last lines printed during the attempt of this log.txt, valid UTF-8; empty if unknown.
  virtual std::string last_lines(const std::filesystem::path& log) = 0;
  /// Asks the worker to write a checkpoint and end (SIGTERM to its group).
  virtual void stop() = 0;
  /// Kills its process group (SIGKILL). The end is reported like any other.
  virtual void kill() = 0;
  /// pid, pid_start and host of the process, for the record.
  virtual const results::Launch& launch() const = 0;
  /// True while the worker waits in a queue or is suspended. This time does not count for its
  /// trial.
  virtual bool waits() const { return false; }
  /// True if the worker waits because it is suspended.
  virtual bool suspended() const { return false; }
  /// When a queue ends it, by the clock of the limits. std::nullopt: unknown, or never.
  virtual std::optional<std::chrono::steady_clock::time_point> ends_by() const {
    return std::nullopt;
  }
};

/// The requirements for a slot, if workers share devices.
struct SlotRequest {
  std::optional<std::int64_t> memory_mib = std::nullopt;  // absent: all memory of a device
  bool whole_device = false;                              // no other worker may share it
  bool first = true;  // for the first trial in line: later requests must not take its room
  /// Devices (SlotDevice::uuid) on which the trial failed: used only if there are no others.
  std::set<std::string> avoided = {};
  std::int64_t gpus = 1;  // several only as whole devices
};

/// How a launcher may use a device.
enum class DeviceUse {
  usual,
  last,   ///< only if no other with fewer failures is free
  never,  ///< no new slots there: it is disabled for the run
};

/// The result of a request to change a reservation.
enum class Resized {
  done,
  no_room,  ///< the slot keeps what it had
  busy,     ///< another petlab is changing the device's shares: ask again later
};

/// A slot's share of a device.
struct DeviceShare {
  std::int64_t memory_mib = 0;  // reserved for the slot
  bool kept = false;  // the device is kept for another trial: no more trials for this slot
};

/// The cores or GPUs that a launcher shares with other runs on this host.
struct SharedPlaces {
  std::filesystem::path folder;     // of the locks of their slots
  std::vector<std::string> places;  // "cpu-3", or UUIDs of GPUs
  std::int64_t places_of_slot = 1;
};

/// The device of a slot's worker, as recorded in trial.json.
struct SlotDevice {
  std::string kind;             // "cpu", "cuda", "rocm"
  std::string uuid;             // of the GPU, of several with commas; empty: none, or not known
  std::int64_t memory_mib = 0;  // reserved for the slot; 0: not known
};

/// Additional functions of a launcher whose slots are shares of devices.
class SharedDevices {
 public:
  virtual ~SharedDevices() = default;
  /// Like Launcher::acquire_slot(), on a device with room for the request.
  virtual std::optional<std::string> acquire_share(const SlotRequest& request) = 0;
  virtual DeviceShare share(const std::string& slot) const = 0;
  /// Records the memory that a slot's worker reported for its current trial; 0: nothing yet. At
  /// least that much is reserved.
  virtual void report_memory(const std::string& slot, std::int64_t reported_mib) = 0;
  /// Changes the reservation of a slot.
  virtual Resized resize_share(const std::string& slot, std::int64_t reserved_mib) = 0;
  /// The most memory that one worker can get.
  virtual std::int64_t largest_share_mib() const = 0;
  /// After acquire_share() found no room: the most memory that a share could have got.
  virtual std::int64_t room_mib() const = 0;
};

/// A job that a dead orchestrator left.
struct LeftJob {
  // The next five are for the launcher.
  std::string name;             // of the submission
  std::int64_t task = 0;        // its worker, in the submission
  std::int64_t array_task = 0;  // its job, in the array
  bool shares_job = false;      // with other workers
  std::string number;           // of the array; empty: not recorded
  std::string job;  // as Worker::launch() names it, and its host; empty: it has not begun
  std::string host;
  std::vector<std::filesystem::path> given;
  bool has_others = false;  // it also has attempts that this run does not watch
};

/// Additional functions of a launcher whose workers are jobs of a queue that outlives this process.
/// With such a launcher, Launcher::start() only notes a job, without an attempt. flush() submits
/// it, and it may wait. Worker::submit() gives it attempts, at the earliest when Worker::launch()
/// has its number. Once it no longer waits, that has its host, too. A destroyed Worker leaves its
/// job running, for the next orchestrator to adopt.
class JobQueue {
 public:
  virtual ~JobQueue() = default;
  /// The number of workers that share a job.
  virtual std::int64_t workers_of_job() const { return 1; }
  /// Submits the noted jobs. Called at the end of each turn.
  virtual void flush() = 0;
  /// The jobs of a dead orchestrator that were given attempts, with their attempt folders in order.
  /// Its other jobs are removed from the queue.
  virtual std::vector<LeftJob> take_left(const std::string& owner) = 0;
  /// Lets such a job end after what it was given.
  virtual void dismiss(const LeftJob& job) = 0;
  /// Like Launcher::start(), for such a job, which continues.
  virtual std::unique_ptr<Worker> adopt(const std::string& slot, const LeftJob& job,
                                        std::function<void(WorkerEnd)> on_end) = 0;
  /// Removes the jobs and files that dead orchestrators without open attempts left. `ended` is true
  /// for the names of these orchestrators.
  virtual void remove_left(const std::function<bool(const std::string& owner)>& ended) = 0;
};

/// Provides slots and starts workers in them. All calls and callbacks happen on the thread of the
/// run's event loop.
class Launcher {
 public:
  virtual ~Launcher() = default;
  /// Acquires a free slot with this number of GPUs, if it has any, and returns its name ("cpu-3");
  /// std::nullopt if none is free. Throws Error.
  virtual std::optional<std::string> acquire_slot(std::int64_t gpus) = 0;
  /// Explains to the user why no slot is free; empty if there is no explanation.
  virtual std::string why_no_slot() const { return {}; }
  /// Releases a slot, whose worker must be gone.
  virtual void release_slot(const std::string& slot) = 0;
  virtual SlotDevice device(const std::string& slot) const = 0;
  /// Sets how a GPU, or the host of jobs, is used from now on. `failures`: of trials there.
  virtual void use_device(const std::string& device, DeviceUse use, std::size_t failures) = 0;
  /// The number of devices that new slots can still be on (use_device()); 1 if devices are not
  /// distinguished.
  virtual std::size_t devices() const { return 1; }
  /// Starts a worker in a slot with its first attempt, or several to train together; a job
  /// (queue()) without one. `on_end` is called once from the loop, never from inside start(), when
  /// the process is gone and all of its output is written. Throws Error if the program cannot be
  /// started.
  virtual std::unique_ptr<Worker> start(const std::string& slot,
                                        const std::vector<std::filesystem::path>& attempt_folders,
                                        std::function<void(WorkerEnd)> on_end) = 0;
  /// True if a worker takes further attempts by submit().
  virtual bool workers_stay() const = 0;
  /// The launcher's name, as recorded in attempts.launcher.
  virtual std::string kind() const = 0;

  /// Where its slots can be; std::nullopt if it shares them with no other run.
  virtual std::optional<SharedPlaces> shared_places() const { return std::nullopt; }
  /// Non-null if slots are shares of devices, acquired by acquire_share().
  virtual SharedDevices* shared_devices() { return nullptr; }
  /// Non-null if workers are jobs. Otherwise they are processes that end with this one.
  virtual JobQueue* queue() { return nullptr; }
};

}  // namespace petlab::orchestrator
