#pragma once

#include <filesystem>
#include <string>

namespace petlab::orchestrator {

/// Finds the program a user named: as a path, relative to the current folder where it has a slash,
/// else on `search_path` (like PATH). Throws std::invalid_argument where it is not there or cannot
/// be executed.
std::filesystem::path find_worker(const std::string& name, const std::string& search_path);

}  // namespace petlab::orchestrator
