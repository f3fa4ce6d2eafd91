#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace petlab::testing {

/// A kind of call that changes something, as a rule of tests/support/fault_shim.cpp matches it.
struct Call {
  std::string name;         // rename
  std::string path;         // a pattern of fnmatch
  std::int64_t most = 0;    // times that one process has made it
  std::int64_t starts = 0;  // processes that have made it
};

/// From a line `call path` of the shim: in a path below `folder` numbers, ids and random letters
/// become patterns. std::nullopt for files that are elsewhere.
std::optional<Call> call_from(const std::string& line, const std::filesystem::path& folder);

}  // namespace petlab::testing
