#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "orchestrator/exchange/attempt_copy.h"

namespace petlab::orchestrator {

/// The first entry of an archive, which lists the others.
inline constexpr const char* kArchiveList = "petlab-archive.json";
inline constexpr int kArchiveFormat = 1;
/// Of the list itself: half a million files.
inline constexpr std::uintmax_t kLargestArchiveList = std::uintmax_t{64} << 20;

/// What an archive holds, as its first entry says.
struct ArchiveList {
  std::string petlab;  ///< version that wrote it
  std::map<std::string, FileDigest> files;
  /// Of attempts' folders, by the folder's name in the archive: what was there and is not in it.
  std::map<std::string, std::vector<std::string>> left_out;
};
std::string archive_list_text(const ArchiveList& list);
/// Throws Error naming the archive and what is wrong with the list, a file's name first of all.
ArchiveList parse_archive_list(const std::string& text, const std::filesystem::path& archive);

/// Why a name cannot be that of a file in an archive; empty: it can. Names are those that a runs
/// folder has: `runs/sweeps/NAME`, `runs/TRIAL/decisions.jsonl`, `runs/TRIAL/NUMBER/…`.
std::string why_no_archive_name(const std::string& name);

/// A name from outside as a message shows it: in quotes, cut, nothing that a terminal obeys.
std::string shown_name(const std::string& name);

}  // namespace petlab::orchestrator
