#pragma once

#include <filesystem>

namespace petlab::orchestrator {

// How petlab finds the processes of a worker, and asks each worker only once to end.

/// The environment variable that marks a worker and everything it starts. Its value is the path of
/// the worker's lock file.
inline constexpr const char* kWorkerVariable = "PETLAB_WORKER";

/// The file next to a worker's lock that records that petlab has asked the worker to end (SIGTERM).
/// The orchestrator, its guardian and the next orchestrator may all have a reason to ask; the one
/// that creates this file asks, and the others wait.
std::filesystem::path asked_file(const std::filesystem::path& worker_lock);
/// Creates the file. Returns true if it did not exist, and also if it cannot be created: asking
/// twice is better than never. Async-signal-safe.
bool first_to_ask(const char* asked_file);

}  // namespace petlab::orchestrator
