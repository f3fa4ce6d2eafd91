#pragma once

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

/// Writes a file under a temporary name in the same folder, syncs file and folder, and renames it.
/// If `file` is a link, replaces its target. The file is readable by all users. Also removes
/// temporary files left by killed processes. Throws base::Error, also if `file` is a folder, a
/// device or a pipe; leaves no temporary file behind.
void write_file_atomically(const std::filesystem::path& file, std::string_view content);
/// Who may read an atomically written file.
enum class Readers {
  everybody,      ///< 0644, for other users of a runs folder and Slurm's nodes
  as_umask_says,  ///< by the process's umask
};
/// Does the same for content in several pieces.
void write_file_atomically(const std::filesystem::path& file,
                           std::span<const std::span<const std::byte>> parts, Readers readers);

/// Does the same for a new file, readable by all users. Returns false if `file` exists, and never
/// replaces it, even if another process creates it at the same time.
bool create_file_atomically(const std::filesystem::path& file, std::string_view content);

/// Syncs the names in a folder. Throws base::Error.
void sync_folder(const std::filesystem::path& folder);

/// Only removes temporary files left by killed processes.
void remove_abandoned_writes(const std::filesystem::path& file);

/// Renames a file or folder on the same file system without ever replacing an existing name. If the
/// file system does not support this (NFS), links a file to its new name, and renames a folder over
/// an empty one. Returns 0 or an errno, EEXIST if the name exists; then `current` keeps its name.
int give_new_name(const std::filesystem::path& current, const std::filesystem::path& name);

}  // namespace petlab::base
