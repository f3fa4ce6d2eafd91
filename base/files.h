#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace petlab::base {

/// Reads a whole file. Throws base::Error if it is unreadable, not a regular file, or larger than
/// `limit` bytes.
std::string read_file(const std::filesystem::path& file, std::uintmax_t limit);

/// Does the same, but returns std::nullopt if the file is missing.
std::optional<std::string> read_file_if_any(const std::filesystem::path& file,
                                            std::uintmax_t limit);

/// The folder of a file; `.` if its path names none.
std::filesystem::path folder_of(const std::filesystem::path& file);

/// The entries of a folder in no particular order; empty if it is missing or may not be opened.
/// Throws base::Error if it cannot be read completely.
std::vector<std::filesystem::path> entries_of(const std::filesystem::path& folder);

/// The mode that open() would give a new file: 0666 without the bits of the umask. Throws
/// base::Error.
mode_t mode_of_new_files();

/// Writes a file under a temporary name in the same folder, syncs file and folder, and renames it.
/// If `file` is a link, replaces its target. The umask decides who can read it. Also removes
/// temporary files left by killed processes. Throws base::Error, also if `file` is a folder, a
/// device or a pipe; leaves no temporary file behind.
void write_file_atomically(const std::filesystem::path& file, std::string_view content);
/// Does the same for content in several pieces.
void write_file_atomically(const std::filesystem::path& file,
                           std::span<const std::span<const std::byte>> parts);

/// Does the same for a new file. Returns false if `file` exists, and never replaces it, even if
/// another process creates it at the same time.
bool create_file_atomically(const std::filesystem::path& file, std::string_view content);

/// Syncs the names in a folder. Throws base::Error.
void sync_folder(const std::filesystem::path& folder);
/// Syncs all files of the file system that has the folder: one flush for any number of files.
/// Throws base::Error.
void sync_file_system(const std::filesystem::path& folder);

/// Only removes temporary files left by killed processes.
void remove_abandoned_writes(const std::filesystem::path& file);

/// Renames a file or folder on the same file system without ever replacing an existing name. If the
/// file system does not support this (NFS), links a file to its new name, and renames a folder over
/// an empty one. Returns 0 or an errno, EEXIST if the name exists; then `current` keeps its name.
int give_new_name(const std::filesystem::path& current, const std::filesystem::path& name);

}  // namespace petlab::base
