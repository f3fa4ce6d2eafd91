#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "orchestrator/exchange/incoming.h"
#include "orchestrator/exchange/take_over.h"
#include "results/store.h"

namespace petlab::orchestrator {

// One portable file of sweeps: a tar, compressed by gzip, whose first entry `petlab-archive.json`
// names every other with its size and SHA-256; those are files of a runs folder, below `runs/`
// (docs/reference/runs-folder.md).

/// Which of the attempts' artifacts go into an archive.
enum class ArchivedArtifacts {
  none,
  result,  ///< of the attempts whose values count
  all,
};

struct ArchiveOptions {
  std::vector<std::string> sweeps;  ///< names; empty: all that the database has
  ArchivedArtifacts artifacts = ArchivedArtifacts::result;
  std::string petlab;        ///< version of the program that writes it
  bool checkpoints = false;  ///< of trials without a result, so that they can be gone on with
};

/// What write_archive wrote.
struct Archived {
  std::int64_t sweeps = 0;
  std::int64_t trials = 0;
  std::int64_t attempts = 0;
  std::int64_t files = 0;
  std::uintmax_t bytes = 0;          ///< of the files
  std::uintmax_t archive_bytes = 0;  ///< of the archive
  std::string digest;                ///< of the archive: "sha256:…"
  /// Trials that run, and attempts whose folder is not there.
  std::vector<NotTaken> left;
};

/// Writes the sweeps of a database with their trials, those of earlier definitions included, to a
/// new file, which is there complete or not at all. The same contents give the same bytes. Throws
/// std::invalid_argument where the file exists or there is no such sweep, Error and results::Error
/// for files and the database.
Archived write_archive(const results::Reader& reader, const std::filesystem::path& database,
                       const std::filesystem::path& runs, const std::filesystem::path& file,
                       const ArchiveOptions& options);

/// Unpacks an archive into `incoming` as a runs folder and returns that. Every entry is held
/// against the first one's list before and while it is written. Throws Error naming the archive and
/// the entry: no archive of petlab, a name that leads elsewhere, anything but a file, an entry that
/// the list has not, has otherwise or has twice, another size or digest, a cut end, more than the
/// disk has room for.
std::filesystem::path unpack_archive(const std::filesystem::path& file, const Incoming& incoming);

}  // namespace petlab::orchestrator
