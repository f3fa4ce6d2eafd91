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

/// The whole file as bytes. Throws base::Error where it cannot be read, is no regular file or is
/// larger than `limit` bytes.
std::string read_file(const std::filesystem::path& file, std::uintmax_t limit);

/// The same; std::nullopt where there is no such file.
std::optional<std::string> read_file_if_any(const std::filesystem::path& file,
                                            std::uintmax_t limit);

/// The folder that holds a file: `.` where its path names none.
std::filesystem::path folder_of(const std::filesystem::path& file);

/// What lies in a folder, in no order; nothing where it is not there or may not be opened. Throws
/// base::Error where it cannot be read to its end.
std::vector<std::filesystem::path> entries_of(const std::filesystem::path& folder);

/// Writes under a temporary name in the same folder, syncs file and folder, and renames. A link
/// stays, and the file that it leads to is replaced. Throws base::Error, also where `file` is a
/// folder, a device or a pipe, and leaves no temporary file behind; one that an earlier, killed
/// process left of the same file is removed. Everybody may read it.
void write_file_atomically(const std::filesystem::path& file, std::string_view content);
/// Who may read a file that is written whole.
enum class Readers {
  everybody,      ///< 0644: other users of a runs folder, and Slurm's nodes
  as_umask_says,  ///< as any file that a program makes
};
/// The same for content in pieces, one behind the other.
void write_file_atomically(const std::filesystem::path& file,
                           std::span<const std::span<const std::byte>> parts, Readers readers);

/// That removal alone.
void remove_abandoned_writes(const std::filesystem::path& file);

/// Renames a file or a folder to a name that nothing has yet, on the same file system, and replaces
/// nothing whatever happens beside it. Where the file system cannot rename so (NFS), a file is
/// linked to its new name, and a folder put in the place of an empty one. Returns 0, or the error's
/// number, EEXIST where the name is taken; `made` has its old name then.
int give_new_name(const std::filesystem::path& made, const std::filesystem::path& name);

}  // namespace petlab::base
