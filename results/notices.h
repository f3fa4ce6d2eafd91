#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

namespace petlab::results {

/// Where a process tells its user, in one line each, which databases it updated or, as it only
/// reads, has read through an updated copy. Opening a database can do either, so the program sets
/// this once. Safe from any thread.
void tell_notices(std::function<void(const std::string&)> tell);
/// Tells of the copies of databases that were not updated since, each once. A command that writes a
/// database often reads it first; the copy is not worth a line then.
void tell_of_copies();

namespace internal {

void note_copied(const std::filesystem::path& database, std::int64_t version);
/// Told at once.
void note_updated(const std::filesystem::path& database, std::int64_t version,
                  const std::filesystem::path& backup);

}  // namespace internal
}  // namespace petlab::results
