#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
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
struct WorkerEnd {
  std::variant<Exited, Killed> how;
  /// The last lines of its output, valid UTF-8; empty where it said nothing.
  std::string last_lines;
};
/// "exit code 3", "signal 9 (Killed)".
std::string to_string(const WorkerEnd& end);

/// A running worker. Destroying it ends and reaps its whole process group at once.
class Worker {
 public:
  virtual ~Worker() = default;
  /// Hands over one more attempt; only where the launcher's workers stay for several.
  virtual void submit(const std::filesystem::path& attempt_folder) = 0;
  /// No more attempts will come: the worker ends after those that it has.
  virtual void close() = 0;
  /// What the worker prints from here on belongs to this log.txt; what it printed so far is written
  /// to the earlier one first.
  virtual void log_to(const std::filesystem::path& log) = 0;
  /// The last lines that it printed since log_to, valid UTF-8.
  virtual std::string last_lines() = 0;
  /// Asks it to write a checkpoint and end (SIGTERM to its group).
  virtual void stop() = 0;
  /// Ends its group at once (SIGKILL); the end is reported as any other.
  virtual void kill() = 0;
  /// pid, pid_start and host of the process, for the record.
  virtual const results::Launch& launch() const = 0;
};

/// Where workers run. All calls and callbacks happen on the thread of the run's event loop.
class Launcher {
 public:
  virtual ~Launcher() = default;
  /// Takes a free slot and returns its name ("cpu-3"); std::nullopt: none is free now. Throws
  /// Error.
  virtual std::optional<std::string> acquire_slot() = 0;
  /// Gives a slot back; its worker must be gone.
  virtual void release_slot(const std::string& slot) = 0;
  /// What trial.json says of a slot's device: "cpu".
  virtual std::string device(const std::string& slot) const = 0;
  /// Starts a worker in a slot with its first attempt. `on_end` is called once, from the loop, when
  /// the process is gone and all of its output is written; never from inside start(). Throws Error
  /// where the program cannot be started.
  virtual std::unique_ptr<Worker> start(const std::string& slot,
                                        const std::filesystem::path& attempt_folder,
                                        std::function<void(WorkerEnd)> on_end) = 0;
  /// True: a worker takes further attempts by submit().
  virtual bool workers_stay() const = 0;
};

}  // namespace petlab::orchestrator
