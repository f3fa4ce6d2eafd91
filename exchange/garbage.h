#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "exchange/merge_runs.h"

namespace petlab::exchange {

/// What `petlab db gc` deletes from a runs folder.
struct GarbageOptions {
  /// Checkpoints that will never be resumed: of trials with a valid result, of attempts before a
  /// finished one, and all except an attempt's last two.
  bool checkpoints = true;
  /// Artifacts of discarded and replaced results, and of unfinished attempts.
  bool artifacts = true;
  /// Incomplete folders of killed processes.
  bool leftovers = true;
};

/// An unneeded file or folder.
struct Garbage {
  std::string kind;  ///< checkpoint, artifact, leftover
  std::string trial;
  std::int64_t attempt = 0;  ///< 0: none
  std::filesystem::path file;
  std::uintmax_t bytes = 0;  ///< file size
  std::string why;
};

/// The result of a search or a collection.
struct Collected {
  std::vector<Garbage> garbage;
  /// Disk space freed. Files with remaining hard links free none.
  std::uintmax_t bytes = 0;
  std::int64_t running = 0;  ///< trials skipped because they have an open attempt
  /// Trials skipped for another reason.
  std::vector<NotTaken> left;
};

/// Temporary place for files that are about to be deleted.
std::filesystem::path garbage_folder(const std::filesystem::path& runs);

/// Finds unneeded files without changing anything.
Collected find_garbage(const std::filesystem::path& database, const std::filesystem::path& runs,
                       const GarbageOptions& options);

/// Deletes unneeded files. Each trial is checked again in a database transaction, during which no
/// run can claim it; its files are moved to `.garbage` there and deleted afterwards. A run that
/// starts at any time therefore finds the files that it needs.
///
/// Skips trials with an open attempt, alive or dead; files of attempts whose worker may still be
/// alive (a `lost` one, or a queue's job without its own report of its end); and trials whose
/// folder has attempts or events that the database lacks, or another machine's attempt under the
/// same number.
///
/// A killed collection can be repeated. Throws results::Error, and Error if a merge, an import,
/// another gc or a run of another database is using the folder.
Collected collect_garbage(const std::filesystem::path& database, const std::filesystem::path& runs,
                          const GarbageOptions& options);

}  // namespace petlab::exchange
