#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

namespace petlab::results {

/// Sets who prints notices: a line for each database that the process updated, or that it only
/// reads and has read through an updated copy. Opening a database can do either, so the program
/// sets this once. Safe from any thread.
void set_notice_printer(std::function<void(const std::string&)> print);
/// Prints the notices of copies whose databases were not updated since, each once. A command that
/// writes a database often reads it first; the copy is not worth a line then.
void print_copy_notices();

namespace internal {

void note_copied(const std::filesystem::path& database, std::int64_t version);
/// Prints its notice at once.
void note_updated(const std::filesystem::path& database, std::int64_t version,
                  const std::filesystem::path& backup);

}  // namespace internal
}  // namespace petlab::results
