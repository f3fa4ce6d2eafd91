#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "orchestrator/host/error.h"
#include "protocol/attempt.h"
#include "protocol/trial_directory.h"

namespace petlab::orchestrator {

// Files of attempts on their way from one runs folder to another. All throw Error and base::Error
// naming the file.

/// A file that is to be copied is not what it must be, or cannot be read; the disk that it is
/// copied to is not to blame.
struct SourceError : Error {
  using Error::Error;
};

/// Size and SHA-256 of a file's bytes.
struct FileDigest {
  std::uintmax_t size = 0;
  std::string digest;  // "sha256:…"
  bool operator==(const FileDigest&) const = default;
};
/// Calls `take` with each part of a file; not through a link.
FileDigest read_in_parts(const std::filesystem::path& file,
                         const std::function<void(const char*, std::size_t)>& take);
FileDigest digest_of_file(const std::filesystem::path& file);
/// Whether two files hold the same, by their bytes: cheaper than their digests. Not through links.
bool have_same_bytes(const std::filesystem::path& one, const std::filesystem::path& other);

/// Names of the regular files below a folder, relative to it, sorted. Throws for a link, a device
/// or a pipe: what it leads to is not the folder's.
std::vector<std::string> files_below(const std::filesystem::path& folder);

/// Copies a file to a name that is not there yet, makes the folders of it, syncs it and reads it
/// back: it has the digest of what was read, or this throws.
FileDigest copy_checked(const std::filesystem::path& from, const std::filesystem::path& to);

/// Makes the names in a folder last a power cut.
void sync_folder(const std::filesystem::path& folder);

/// What an attempt leaves behind once its trial has a result: all but what it could be gone on
/// from.
bool outlives_the_trial(const std::string& name);

/// Which attempt this is, wherever its folder lies and whatever number it has there: who began it
/// and when. Empty where nobody wrote that down.
std::string attempt_identity(const protocol::TrialDirectory& directory);
std::string attempt_identity(const protocol::AttemptBegun& begun);

/// The note of an attempt that was taken over: where from, under which number, and what its files
/// were. Files that petlab or the worker may still change are not in it.
struct TakenOverNote {
  std::string from;
  std::int64_t attempt = 0;
  std::map<std::string, FileDigest> files;  // by name
  std::vector<std::string> left_out;        // that were not brought along
};
std::filesystem::path taken_over_file(const std::filesystem::path& attempt_folder);
void write_taken_over_note(const std::filesystem::path& attempt_folder, const TakenOverNote& note);
/// std::nullopt where the attempt was made here.
std::optional<TakenOverNote> read_taken_over_note(const std::filesystem::path& attempt_folder);

/// Where an attempt comes from, and what it is to be here.
struct AttemptCopy {
  protocol::TrialDirectory from;
  std::string source;                            // as people call it
  std::int64_t number = 1;                       // here
  std::map<std::int64_t, std::int64_t> numbers;  // of the trial's attempts, there to here
  bool everything = true;                        // also what it could be gone on from
  std::string artifact;                          // its name, where its result counts here
};
/// Copies an attempt's files to `folder`, which is not there yet, synced, with its note. Where its
/// number, or that of the attempt it went on from, is another one here, trial.json and
/// attempt.jsonl say so. Returns the bytes that were copied.
std::uintmax_t copy_attempt(const AttemptCopy& copy, const std::filesystem::path& folder);

/// Brings an attempt that is here what it lacks of its files: what was left out when it was taken
/// over, and its artifact. Through `staging`, a folder of the same file system. Returns the names
/// of what came.
std::vector<std::string> complete_attempt(const AttemptCopy& copy,
                                          const std::filesystem::path& folder,
                                          const std::filesystem::path& staging);

}  // namespace petlab::orchestrator
