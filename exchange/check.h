#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace petlab::exchange {

/// The places that `petlab db check` compares.
struct CheckedPlaces {
  std::filesystem::path database;
  std::filesystem::path runs;
  /// `--db FILE` and `--runs FOLDER`, quoted for a shell, for the commands in findings.
  std::string database_word, runs_word;
};

/// A fault found by check().
struct Finding {
  std::string kind;  ///< one word; listed in docs/guides/maintain-a-database.md
  std::string trial;
  std::int64_t attempt = 0;    ///< 0: none
  std::filesystem::path file;  ///< empty: none
  std::string text;            ///< what was found and expected
  std::string fix;             ///< a command or an instruction
};

struct CheckReport {
  std::int64_t trials = 0;
  std::int64_t attempts = 0;
  std::int64_t values = 0;     ///< reported by all attempts
  std::int64_t artifacts = 0;  ///< whose bytes were checked
  std::uintmax_t bytes = 0;    ///< of artifacts and other files with recorded digests
  std::vector<Finding> findings;
  /// Data known to be missing, which is no fault.
  std::vector<std::string> notes;
};

/// Compares a database with its runs folder. Reads the folder as `petlab db rebuild` does, and
/// compares every sweep, attempt, value and decision. Verifies artifacts and the files of merged
/// attempts against their digests. Changes neither; temporary data goes to TMPDIR. Throws
/// results::Error if the database cannot be read at all, and Error if a folder cannot.
CheckReport check(const CheckedPlaces& places);

}  // namespace petlab::exchange
