#pragma once

#include <compare>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "sweeps/task.h"
#include "sweeps/trial_config.h"

namespace petlab::sweeps {

/// The identity of a trial: 16 hexadecimal digits.
struct TrialId {
  std::string value;
  auto operator<=>(const TrialId&) const = default;
};

/// Hashes the fields that are active in `config` and differ from the defaults of identity version
/// 1, with the backbone and each task by their digests (never by name or path of the backbone).
/// `training.checkpoint_every` decides no number and is left out.
/// `task_digests` are those of config.tasks, in that order.
TrialId trial_id(const TrialConfig& config, std::string_view backbone_digest,
                 std::span<const std::string> task_digests);

/// Digests of files, remembered in `cache_folder/digests.json` by path, size, modification time and
/// inode; a cache that is missing, broken or unwritable only costs time. Written atomically by
/// save() and the destructor. Not for several threads.
class FileDigests {
 public:
  /// An empty `cache_folder` remembers nothing on disk.
  explicit FileDigests(std::filesystem::path cache_folder);
  ~FileDigests();
  FileDigests(const FileDigests&) = delete;
  FileDigests& operator=(const FileDigests&) = delete;

  /// "sha256:…" of the file's content. Throws sweeps::Error where it cannot be read.
  std::string of(const std::filesystem::path& file);
  /// Writes what was learned; never throws.
  void save() noexcept;

 private:
  std::filesystem::path cache_file_;
  std::map<std::string, std::string> known_;  // "path|size|mtime_ns|inode" -> digest
  bool changed_ = false;
};

/// Of a backbone's folder: config.json, weights and tokenizer files by name and content; other
/// files and the folder's place do not count. Throws sweeps::Error where config.json or weights are
/// missing.
std::string backbone_digest(const std::filesystem::path& folder, FileDigests& digests);

/// Of a task's data files (content, in the order train, validation, test). Throws sweeps::Error.
std::string data_digest(const TaskDeclaration& task,
                        std::span<const std::filesystem::path> data_folders, FileDigests& digests);

}  // namespace petlab::sweeps
