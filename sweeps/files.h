#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace petlab::sweeps {

/// The whole file as bytes. Throws sweeps::Error where it cannot be read, is no regular file or is
/// larger than `limit` bytes.
std::string read_file(const std::filesystem::path& file, std::uintmax_t limit);

/// Writes under a temporary name in the same folder, syncs file and folder, and renames. Throws
/// sweeps::Error and leaves no temporary file behind; one that an earlier, killed process left of
/// the same file is removed.
void write_file_atomically(const std::filesystem::path& file, std::string_view content);

/// That removal alone.
void remove_abandoned_writes(const std::filesystem::path& file);

}  // namespace petlab::sweeps
