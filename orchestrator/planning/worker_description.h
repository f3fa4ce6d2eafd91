#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "orchestrator/launching/worker_command.h"
#include "orchestrator/planning/gang_rule.h"

namespace petlab::orchestrator {

/// A worker's description of itself (`WORKER --describe`, docs/reference/worker-protocol.md).
struct WorkerDescription {
  std::string name;
  std::string version;
  std::int64_t protocol = 1;
  std::string numerics;
  /// The devices it can compute on: "cpu", "cuda", "rocm". Empty: not reported, so any device may
  /// be assigned.
  std::vector<std::string> devices;
  /// The id of the catalog of what it can train, which is learned (sweeps/worker_catalog.h). Empty:
  /// the built-in catalog.
  std::string catalog;
  /// Which trials it can train together. Absent: none.
  std::optional<GangRule> gangs;
  /// Whether it stops a single trial if asked by a file (protocol::TrialDirectory::stop).
  bool stops_trials = false;
  /// The most GPUs that it can use for a trial; absent: any number.
  std::optional<std::int64_t> max_gpus;
  /// The path of the LibTorch library that it uses. Empty: not reported.
  std::string libtorch;
  /// What it says about its build and libraries, as in the event `started`: a JSON object as text.
  /// Empty: not reported.
  std::string provenance;
  /// Why only the command is known, with the first line that was printed: "ended with exit code
  /// 127: …". Empty if the worker described itself.
  std::string undescribed;
};

/// Time limit for a worker's description. Loading a big library takes some seconds.
inline constexpr std::chrono::seconds kDescribeTimeout{60};

/// Runs `WORKER --describe`. A worker that exits non-zero, prints no JSON object or does not answer
/// within `timeout` is described by its command alone. A worker is asked once in the life of this
/// process. Throws Error if it cannot be started, if a value has a different type than in
/// docs/reference/worker-protocol.md, if its protocol is not 1, or if its catalog has a fault or
/// contradicts another.
WorkerDescription describe_worker(const WorkerCommand& worker, std::chrono::milliseconds timeout);

}  // namespace petlab::orchestrator
