#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "orchestrator/exchange/take_over.h"

namespace petlab::orchestrator {

/// What of a runs folder `petlab db gc` takes away.
struct GarbageOptions {
  /// Checkpoints that no attempt will go on from: of trials with a result that stands, of attempts
  /// before one that finished, and those beside an attempt's last one.
  bool checkpoints = true;
  /// Artifacts whose values count nowhere: of results that were discarded or made again, and of
  /// attempts that did not finish.
  bool artifacts = true;
  /// Folders that a killed process left half-made.
  bool leftovers = true;
};

/// A file or a folder that nobody needs.
struct Garbage {
  std::string kind;  ///< checkpoint, artifact, leftover
  std::string trial;
  std::int64_t attempt = 0;  ///< 0: none
  std::filesystem::path file;
  std::uintmax_t bytes = 0;  ///< as its size says
  std::string why;
};

/// What was found, or removed.
struct Collected {
  std::vector<Garbage> garbage;
  /// What the disk gets back: files with another name that stays give nothing.
  std::uintmax_t bytes = 0;
  std::int64_t running = 0;  ///< trials that were left alone as an attempt of theirs is open
  /// Trials that were left alone for another reason.
  std::vector<NotTaken> left;
};

/// Where what is to be deleted lies for a moment, out of everybody's sight.
std::filesystem::path garbage_folder(const std::filesystem::path& runs);

/// Looks for what nobody needs, and changes nothing.
Collected find_garbage(const std::filesystem::path& database, const std::filesystem::path& runs,
                       const GarbageOptions& options);

/// Removes it. A trial is looked at again in a transaction of the database, in which nobody claims
/// one, and its files are moved aside there (`.garbage`) and deleted behind it: a run that begins
/// at any moment finds what it needs, or is not let have the trial before. Left alone is every
/// trial with an open attempt, whether that is alive or dead; what an attempt has whose worker may
/// live on (a `lost` one, or a queue's job that did not end by its own word); and a trial of which
/// the folder has attempts that the database does not know, another machine's attempt under one's
/// number, or events that the database has not read. Killed at any moment and repeated, it comes to
/// the same. Throws Error where a merge, an import or another gc goes on in the folder, and where a
/// run of another database does; and results::Error.
Collected collect_garbage(const std::filesystem::path& database, const std::filesystem::path& runs,
                          const GarbageOptions& options);

}  // namespace petlab::orchestrator
