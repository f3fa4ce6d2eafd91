#pragma once

#include <cstdint>
#include <filesystem>

namespace petlab::results {

/// Copies a database, which others may read and write meanwhile, as it is at one moment. The copy
/// is on the disk when this returns, or not there at all. Throws Error: no petlab's database, the
/// disk, a file that has the copy's name.
void back_up(const std::filesystem::path& database, const std::filesystem::path& copy);

namespace internal {

/// Copies a database beside itself before its tables are changed, while the caller is the only one
/// that may write it and has not yet. The copy, which is returned, has the file's name with
/// `.v1.bak` for version 1, and replaces an earlier one of that version. Throws Error.
std::filesystem::path keep_before_update(const std::filesystem::path& database,
                                         std::int64_t version);

}  // namespace internal
}  // namespace petlab::results
