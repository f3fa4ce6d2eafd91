#pragma once

#include <cstdint>
#include <filesystem>

namespace petlab::results {

/// Copies a consistent state of a database, while others may read and write it. The copy is
/// complete and on the disk when this returns, or does not exist. Throws Error if `database` is not
/// petlab's, `copy` exists, or the disk fails.
void back_up(const std::filesystem::path& database, const std::filesystem::path& copy);

namespace internal {

/// Copies a database next to itself before an update of its tables. The caller must hold the write
/// lock and not have written yet. Appends `.v1.bak` to the name for version 1, replaces an earlier
/// copy, and returns the path. Throws Error.
std::filesystem::path keep_before_update(const std::filesystem::path& database,
                                         std::int64_t version);

}  // namespace internal
}  // namespace petlab::results
