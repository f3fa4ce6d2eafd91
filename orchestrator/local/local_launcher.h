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
  int slots = 1;                       // maximum number; with GPUs, as many as their memory allows
  std::vector<Gpu> gpus;               // empty: workers run on CPU cores
  int shares = 1;                      // maximum number of parallel workers on a GPU
  bool hide_gpus = false;              // workers on CPU cores see none
  sweeps::Environment environment;     // for nvidia-smi; only with GPUs
  int threads = 1;                     // the worker's OMP_NUM_THREADS if the user has not set it
  std::filesystem::path slots_folder;  // orchestrator/host/slots.h
  /// Locks of this orchestrator's workers are `locks_folder/OWNER.SLOT.lock`.
  std::filesystem::path locks_folder;
  std::string owner;
  /// A worker that was asked to end because the orchestrator died is killed after this.
  std::chrono::milliseconds grace = std::chrono::seconds(10);
  /// Maximum size of each attempt's log.txt.
  std::int64_t max_log_bytes = std::int64_t{64} << 20;
};

/// The most descriptors that a run opens for this many workers with `threads` threads each, in
/// addition to those that are open before it starts.
std::int64_t files_of_workers(std::int64_t workers, std::int64_t threads);
/// The number of workers that need no more than `files` descriptors; 0 if not even one does.
std::int64_t workers_within(std::int64_t files, std::int64_t threads);

/// Runs workers as processes on this machine, each in its own process group and with a guardian,
/// holding the lock of its slot and its own lock. SIGPIPE must be ignored in this process.
std::unique_ptr<Launcher> make_local_launcher(boost::asio::io_context& loop, LocalOptions options);

}  // namespace petlab::orchestrator
