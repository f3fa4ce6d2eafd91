#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "exchange/incoming.h"
#include "exchange/merge_runs.h"
#include "results/store.h"

namespace petlab::exchange {

// A portable file of sweeps: a gzipped tar. Its first entry `petlab-archive.json` lists all others
// with their sizes and SHA-256; those are files of a runs folder, below `runs/`
// (docs/reference/runs-folder.md).

/// Which artifacts to put into an archive.
enum class ArchivedArtifacts {
  none,
  result,  ///< of the attempts whose values count
  all,
};

struct ArchiveOptions {
  std::vector<std::string> sweeps;  ///< names; empty: all sweeps of the database
  ArchivedArtifacts artifacts = ArchivedArtifacts::result;
  std::string petlab;        ///< version of the program that writes the archive
  bool checkpoints = false;  ///< include checkpoints of trials without a result, to resume them
};

/// The result of write_archive.
struct Archived {
  std::int64_t sweeps = 0;
  std::int64_t trials = 0;
  std::int64_t attempts = 0;
  std::int64_t files = 0;
  std::uintmax_t bytes = 0;          ///< of the archived files
  std::uintmax_t archive_bytes = 0;  ///< of the archive
  std::string digest;                ///< of the archive: "sha256:…"
  /// Running trials, and attempts whose folders are missing.
  std::vector<NotTaken> left;
};

/// Writes sweeps with their trials, including those of earlier definitions, to a new file. The file
/// appears only once complete, and equal contents give equal bytes. Throws std::invalid_argument if
/// the file exists or a sweep does not, and Error and results::Error for files and the database.
Archived write_archive(const results::Reader& reader, const std::filesystem::path& database,
                       const std::filesystem::path& runs, const std::filesystem::path& file,
                       const ArchiveOptions& options);

/// Unpacks an archive into `incoming` and returns the path of the unpacked runs folder. Checks
/// every entry against the list before and while writing it. Throws Error naming the archive and
/// the entry if the file is not an archive of petlab, a name leads outside, an entry is not a
/// regular file, is missing from the list, contradicts it or occurs twice, a size or digest is
/// wrong, the archive is truncated, or the disk lacks space.
std::filesystem::path unpack_archive(const std::filesystem::path& file, const Incoming& incoming);

}  // namespace petlab::exchange
