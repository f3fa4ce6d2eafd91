#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "exchange/error.h"
#include "protocol/attempt.h"
#include "protocol/trial_directory.h"

namespace petlab::exchange {

// Copying attempts' files from one runs folder to another. All functions throw Error and
// base::Error naming the file.

/// A source file is unreadable or invalid. The fault is not the target's.
struct SourceError : Error {
  using Error::Error;
};

/// Size and SHA-256 of a file's bytes.
struct FileDigest {
  std::uintmax_t size = 0;
  std::string digest;  // "sha256:…"
  bool operator==(const FileDigest&) const = default;
};
/// Calls `take` with each block of a file. Does not follow a link.
FileDigest read_in_parts(const std::filesystem::path& file,
                         const std::function<void(const char*, std::size_t)>& take);
FileDigest digest_of_file(const std::filesystem::path& file);
/// Compares two files byte by byte, which is cheaper than digests. Does not follow links.
bool have_same_bytes(const std::filesystem::path& one, const std::filesystem::path& other);

/// Names of the regular files below a folder, relative to it and sorted. Throws for a link, a
/// device or a pipe: their contents are not part of the folder.
std::vector<std::string> files_below(const std::filesystem::path& folder);

/// Copies a file to a new name, creates its folders, syncs it and reads it back. Throws if the
/// digest differs from that of the bytes read.
FileDigest copy_checked(const std::filesystem::path& from, const std::filesystem::path& to);

/// True for files that are kept once a trial has a result: all except checkpoints and resume files.
bool outlives_the_trial(const std::string& name);

/// Identifies an attempt regardless of its folder and number, by the owner and time of its start.
/// Empty if attempt.jsonl does not record them.
std::string attempt_identity(const protocol::TrialDirectory& directory);
std::string attempt_identity(const protocol::AttemptBegun& begun);

/// The note kept with a merged attempt: its source, its number there, and the digests of its files,
/// except of files that petlab or the worker may still change.
struct MergeNote {
  std::string from;
  std::int64_t attempt = 0;
  std::map<std::string, FileDigest> files;  // by name
  std::vector<std::string> left_out;        // not copied
};
std::filesystem::path merge_note_file(const std::filesystem::path& attempt_folder);
void write_merge_note(const std::filesystem::path& attempt_folder, const MergeNote& note);
/// std::nullopt for an attempt that was not merged.
std::optional<MergeNote> read_merge_note(const std::filesystem::path& attempt_folder);

/// The source of an attempt, and its identity in the target.
struct AttemptCopy {
  protocol::TrialDirectory from;
  std::string source;                            // as shown to the user
  std::int64_t number = 1;                       // in the target
  std::map<std::int64_t, std::int64_t> numbers;  // the trial's attempt numbers: source to target
  bool everything = true;                        // also copy checkpoints and resume files
  std::string artifact;                          // its name, if its result counts in the target
};
/// Copies an attempt's files to the new folder `folder`, synced, with its note. Renumbers attempts
/// in trial.json and attempt.jsonl if they have different numbers in the target. Returns the number
/// of bytes copied.
std::uintmax_t copy_attempt(const AttemptCopy& copy, const std::filesystem::path& folder);

/// Copies missing files of an existing attempt: those left out earlier, and its artifact. `staging`
/// must be on the same file system. Returns the names of the files copied.
std::vector<std::string> complete_attempt(const AttemptCopy& copy,
                                          const std::filesystem::path& folder,
                                          const std::filesystem::path& staging);

}  // namespace petlab::exchange
