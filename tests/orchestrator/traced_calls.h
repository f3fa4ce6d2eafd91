#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace petlab::testing {

/// A kind of call that changes something, in the form that tests/support/fault_shim.cpp matches.
struct Call {
  std::string name;         // rename
  std::string path;         // a pattern of fnmatch
  std::int64_t most = 0;    // the most calls of one process
  std::int64_t starts = 0;  // processes that made the call
};

/// Parses a line `call path` of the shim. In paths below `folder`, numbers, ids and random letters
/// become patterns. Returns std::nullopt for files elsewhere.
std::optional<Call> call_from(const std::string& line, const std::filesystem::path& folder);

}  // namespace petlab::testing
