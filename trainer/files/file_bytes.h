#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace petlab::trainer {

/// The bytes of a file, memory-mapped read-only or held in memory (for tests and fuzzing). Keep the
/// shared pointer as long as views of it. If another program shortens a mapped file in use, SIGBUS
/// ends the process: a documented limit of memory mapping.
class FileBytes {
 public:
  /// Maps the file. Throws Error with its name if it cannot be opened or is not a regular file.
  static std::shared_ptr<const FileBytes> map(const std::filesystem::path& file);
  /// Takes ownership of the bytes. `name` replaces the file in messages.
  static std::shared_ptr<const FileBytes> own(std::string name, std::vector<std::byte> bytes);
  ~FileBytes();
  FileBytes(const FileBytes&) = delete;
  FileBytes& operator=(const FileBytes&) = delete;

  const std::string& name() const { return name_; }
  std::span<const std::byte> bytes() const { return bytes_; }
  bool is_mapped() const { return mapped_; }

 private:
  FileBytes() = default;
  std::string name_;
  std::vector<std::byte> owned_;
  std::span<const std::byte> bytes_;
  bool mapped_ = false;
};

/// Writes a temporary file next to `file`, syncs it, renames it and syncs the folder; the old file
/// stays intact until then. Throws Error with the file's name and the system's reason, also if the
/// existing file is not a regular one.
void write_file_atomically(const std::filesystem::path& file,
                           std::span<const std::span<const std::byte>> parts);

}  // namespace petlab::trainer
