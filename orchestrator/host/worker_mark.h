#pragma once

#include <filesystem>

namespace petlab::orchestrator {

// By what the processes of a worker are found, and asked once to end.

/// The variable in a worker's environment, and in that of all that it starts, by which its
/// processes are found: the path of its lock file.
inline constexpr const char* kWorkerVariable = "PETLAB_WORKER";

/// The file next to a worker's lock that records that petlab has asked the worker to end (SIGTERM).
/// The orchestrator, its guardian and the next orchestrator may all have a reason to ask; the one
/// that creates this file asks, and the others wait.
std::filesystem::path asked_file(const std::filesystem::path& worker_lock);
/// Makes it. True where it was not there, and where it cannot be made: asking twice is better than
/// never. Async-signal-safe.
bool first_to_ask(const char* asked_file);

}  // namespace petlab::orchestrator
