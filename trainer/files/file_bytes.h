#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace petlab::trainer {

/// The bytes of a file: memory-mapped read-only, or held in memory (tests and fuzzing). Whoever
/// hands out views into it keeps the shared pointer. A mapped file that another program shortens
/// while it is in use ends the process with SIGBUS: a stated limit of memory mapping.
class FileBytes {
 public:
  /// Maps the file. Throws Error naming it where it cannot be opened or is no regular file.
  static std::shared_ptr<const FileBytes> map(const std::filesystem::path& file);
  /// Takes the bytes; `name` stands for the file in messages.
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

/// Writes a file under a temporary name beside it, syncs it, renames it and syncs the folder.
/// The old file stays whole until then. Throws Error naming the file and the system's reason, also
/// where what is there is no regular file.
void write_file_atomically(const std::filesystem::path& file,
                           std::span<const std::span<const std::byte>> parts);

}  // namespace petlab::trainer
