#pragma once

#include <cstdint>
#include <filesystem>
#include <iosfwd>
#include <string>

#include "results/attempt.h"

namespace petlab::cli {

/// What an attempt ran, for `petlab show --code` and `--diff`.
struct ShownCode {
  std::string trial_id;
  std::int64_t attempt = 0;
  results::Provenance said;
  std::filesystem::path runs;  // where the records of code are
};

/// Prints it for people, or as one JSON object. Throws base::Error if the record's file is missing
/// or damaged.
void print_code(std::ostream& out, const ShownCode& code, bool json);

/// Prints the diff of the tracked files, which `git apply` accepts, after a line for each file that
/// is left out. If there is none, says why on `err`. Throws likewise.
void print_diff(std::ostream& out, std::ostream& err, const ShownCode& code);

}  // namespace petlab::cli
