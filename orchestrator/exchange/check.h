#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace petlab::orchestrator {

/// What `petlab db check` looks at.
struct CheckedPlaces {
  std::filesystem::path database;
  std::filesystem::path runs;
  /// `--db FILE` and `--runs FOLDER` as words of a shell, for the commands that findings name.
  std::string database_word, runs_word;
};

/// Something that is not as it should be.
struct Finding {
  std::string kind;  ///< one word, docs/guides/maintain-a-database.md lists them
  std::string trial;
  std::int64_t attempt = 0;    ///< 0: none
  std::filesystem::path file;  ///< empty: none
  std::string text;            ///< what was found and wanted
  std::string fix;             ///< a command, or what else to do
};

struct CheckReport {
  std::int64_t trials = 0;
  std::int64_t attempts = 0;
  std::int64_t values = 0;     ///< reported by all attempts
  std::int64_t artifacts = 0;  ///< whose bytes were looked at
  std::uintmax_t bytes = 0;    ///< of them and of other files whose digests are known
  std::vector<Finding> findings;
  /// What is known to be missing, and is no fault.
  std::vector<std::string> notes;
};

/// Compares a database with its runs folder: reads all of the folder as `petlab db rebuild`
/// would, and compares every sweep, attempt, value and decision; holds artifacts, and the files of
/// attempts that were taken over from elsewhere, against their digests. Changes nothing; what it
/// needs beside goes to the folder for temporary files. Throws results::Error where the database
/// cannot be read at all, Error where a folder cannot.
CheckReport check(const CheckedPlaces& places);

}  // namespace petlab::orchestrator
