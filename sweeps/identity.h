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

/// Hashes the active fields of `config` that differ from the defaults of identity version 1. The
/// backbone and the tasks enter by digest, never by name or path. `training.checkpoint_every` is
/// left out because it affects no numbers. `task_digests` has the digests of config.tasks in order.
TrialId trial_id(const TrialConfig& config, std::string_view backbone_digest,
                 std::span<const std::string> task_digests);

/// Computes digests of files and caches them in `cache_folder/digests.json` by path, size,
/// modification time and inode. A missing, damaged or read-only cache only costs time. save() and
/// the destructor write it atomically. Not thread-safe.
class FileDigests {
 public:
  /// With an empty `cache_folder`, nothing is stored on disk.
  explicit FileDigests(std::filesystem::path cache_folder);
  ~FileDigests();
  FileDigests(const FileDigests&) = delete;
  FileDigests& operator=(const FileDigests&) = delete;

  /// "sha256:…" of the file's content. Throws sweeps::Error if it cannot be read.
  std::string of(const std::filesystem::path& file);
  /// Writes new digests to the cache. Never throws.
  void save() noexcept;

 private:
  std::filesystem::path cache_file_;
  std::map<std::string, std::string> known_;  // "path|size|mtime_ns|inode" -> digest
  bool changed_ = false;
};

/// The digest of a backbone's folder: names and contents of config.json, weights and tokenizer
/// files, regardless of other files and the folder's path. Throws sweeps::Error if config.json or
/// the weights are missing.
/// Of `files` (patterns of names, such as `*.json`) if there are any, otherwise of configuration,
/// weights and tokenizer. Throws likewise if no file matches a pattern.
std::string backbone_digest(const std::filesystem::path& folder, FileDigests& digests,
                            std::span<const std::string> files = {});

/// The digest of a task's data files: contents in the order train, validation, test; empty for a
/// task without files. Throws sweeps::Error.
std::string data_digest(const TaskDeclaration& task,
                        std::span<const std::filesystem::path> data_folders, FileDigests& digests);

}  // namespace petlab::sweeps
