#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

namespace petlab::results {

/// Sets the function that prints notices: one line for each database that this process updates, or
/// reads through an updated copy. Opening a database can cause either, so the program sets this
/// once. Thread-safe.
void set_notice_printer(std::function<void(const std::string&)> print);
/// Prints pending notices about copies, once each. Call this at the end: a command that writes
/// usually reads the database first, and an update makes the notice about the copy obsolete.
void print_copy_notices();

namespace internal {

void note_copied(const std::filesystem::path& database, std::int64_t version);
/// Prints its notice immediately.
void note_updated(const std::filesystem::path& database, std::int64_t version,
                  const std::filesystem::path& backup);

}  // namespace internal
}  // namespace petlab::results
