#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "orchestrator/host/gpus.h"
#include "orchestrator/launching/launcher.h"
#include "orchestrator/launching/worker_command.h"
#include "sweeps/locations.h"

namespace boost::asio {
class io_context;
}

namespace petlab::orchestrator {

struct LocalOptions {
  WorkerCommand worker;
  bool one_process_a_trial = false;    // `WORKER DIR` for each; else `WORKER -` for many
  int slots = 1;                       // at most; with GPUs as their memory allows
  std::vector<Gpu> gpus;               // empty: workers run on CPU cores
  int shares = 1;                      // workers on a GPU at once, at most
  bool hide_gpus = false;              // workers on CPU cores see none
  sweeps::Environment environment;     // for nvidia-smi; only with GPUs
  int threads = 1;                     // OMP_NUM_THREADS of the worker where it is not set
  std::filesystem::path slots_folder;  // orchestrator/host/slots.h
  /// Locks of this orchestrator's workers are `locks_folder/OWNER.SLOT.lock`.
  std::filesystem::path locks_folder;
  std::string owner;
  /// A worker that was asked to end because the orchestrator died is killed after this.
  std::chrono::milliseconds grace = std::chrono::seconds(10);
  /// Of each attempt's log.txt no more than this is kept.
  std::int64_t max_log_bytes = std::int64_t{64} << 20;
};

/// Descriptors that a run needs at most with so many workers of `threads` each, besides those that
/// are open before it begins; and as many workers as need no more than `files`, 0 if not even one.
std::int64_t files_of_workers(std::int64_t workers, std::int64_t threads);
std::int64_t workers_within(std::int64_t files, std::int64_t threads);

/// Processes on this machine: each in a group of its own, under a guardian, holding its slot's lock
/// and its worker's lock. SIGPIPE must be ignored in this process.
std::unique_ptr<Launcher> make_local_launcher(boost::asio::io_context& loop, LocalOptions options);

}  // namespace petlab::orchestrator
