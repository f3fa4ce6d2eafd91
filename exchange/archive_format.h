#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "exchange/attempt_copy.h"

namespace petlab::exchange {

/// Name of the archive's first entry, which lists the others.
inline constexpr const char* kArchiveList = "petlab-archive.json";
inline constexpr int kArchiveFormat = 1;
/// Maximum size of the list itself, enough for half a million files.
inline constexpr std::uintmax_t kLargestArchiveList = std::uintmax_t{64} << 20;

/// The archive's list of contents.
struct ArchiveList {
  std::string petlab;  ///< version that wrote the archive
  std::map<std::string, FileDigest> files;
  /// Files left out of the archive, by the archive name of their attempt's folder.
  std::map<std::string, std::vector<std::string>> left_out;
};
std::string archive_list_text(const ArchiveList& list);
/// Throws Error naming the archive and the fault in its list, starting with the file's name if it
/// has one.
ArchiveList parse_archive_list(const std::string& text, const std::filesystem::path& archive);

/// Returns why a name is invalid in an archive, or an empty string for a valid name. Valid names
/// are those of a runs folder: `runs/sweeps/NAME`, `runs/TRIAL/decisions.jsonl`,
/// `runs/TRIAL/NUMBER/…`.
std::string why_no_archive_name(const std::string& name);

/// Makes an untrusted name safe for messages: quoted, shortened, control characters escaped.
std::string shown_name(const std::string& name);

}  // namespace petlab::exchange
