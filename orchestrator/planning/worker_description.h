#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "orchestrator/launching/worker_command.h"

namespace petlab::orchestrator {

/// What a worker says of itself (`WORKER --describe`, docs/reference/worker-protocol.md).
struct WorkerDescription {
  std::string name;
  std::string version;
  std::int64_t protocol = 1;
  std::string numerics;
  /// What it can compute on: "cpu", "cuda", "rocm". Empty: it does not say, so it is given what
  /// there is.
  std::vector<std::string> devices;
  /// Why nothing but the command is known, and what it said last: "ended with exit code 127: …".
  /// Empty: it described itself.
  std::string undescribed;
};

/// How long a worker may take to say what it is: one that loads a big library takes some seconds.
inline constexpr std::chrono::seconds kDescribeTimeout{60};

/// Asks the worker. One that exits non-zero, prints no JSON object or says nothing within
/// `timeout` is described by its command alone. Throws Error where it cannot be started, a value is
/// of another type than docs/reference/worker-protocol.md has, and where its protocol is another
/// than 1.
WorkerDescription describe_worker(const WorkerCommand& worker, std::chrono::milliseconds timeout);

}  // namespace petlab::orchestrator
