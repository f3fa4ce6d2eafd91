#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace petlab::protocol {

/// A file of the worker's command.
struct CodeFile {
  std::string path;    // absolute
  std::string digest;  // "sha256:…"; empty if the file could not be read
  bool operator==(const CodeFile&) const = default;
};

/// The git repository of the worker's script when the worker was started.
struct CodeRepository {
  std::string folder;  // its top
  std::string commit;
  std::string branch;  // empty: none (a detached HEAD)
  bool clean = true;   // no tracked file differs from the commit
  /// Digest of the tracked files as they were, except for files that usually hold secrets, and
  /// sweep and report files. Empty: unknown.
  std::string tree;
  /// The tracked files that differ from the commit, with git's digest of their content, or
  /// "deleted".
  std::map<std::string, std::string> changed;
  /// The diff to the commit as git prints it. Bytes that are not UTF-8, and control characters, are
  /// written as \xNN.
  std::string diff;
  /// Files whose part of the diff is left out, and why.
  std::map<std::string, std::string> left_out;
  bool operator==(const CodeRepository&) const = default;
};

/// What a worker process ran, as far as petlab sees it from the outside. The worker reports its
/// packages itself. Each record is one file in the runs folder, named by its digest; attempts refer
/// to it (docs/reference/runs-folder.md).
struct CodeRecord {
  std::vector<std::string> command;  // program and arguments
  std::vector<CodeFile> files;
  std::optional<CodeRepository> repository;
  std::string why_no_repository;                   // if there is none
  std::map<std::string, std::string> environment;  // variables of a fixed list
  bool operator==(const CodeRecord&) const = default;
};

/// The record's file text, which its digest is of.
std::string to_text(const CodeRecord& record);

/// runs/sweeps/<digest>.code, with '-' for the digest's colon.
std::filesystem::path code_record_file(const std::filesystem::path& runs,
                                       const std::string& digest);

/// Writes the record unless it exists, and returns its digest. Throws base::Error.
std::string write_code_record(const std::filesystem::path& runs, const CodeRecord& record);

/// Throws base::Error naming the file if it is missing, damaged, or of a newer petlab.
CodeRecord read_code_record(const std::filesystem::path& runs, const std::string& digest);

}  // namespace petlab::protocol
