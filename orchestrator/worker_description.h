#pragma once

#include <chrono>
#include <filesystem>
#include <string>

namespace petlab::orchestrator {

/// What a worker says of itself (`WORKER --describe`, docs/worker.md).
struct WorkerDescription {
  std::string name;
  std::string version;
  std::int64_t protocol = 1;
  std::string numerics;
};

/// Asks the program. One that exits non-zero, prints no JSON object or says nothing within
/// `timeout` is described by its path alone. Throws Error where its protocol is another than 1.
WorkerDescription describe_worker(const std::filesystem::path& program,
                                  std::chrono::milliseconds timeout);

}  // namespace petlab::orchestrator
