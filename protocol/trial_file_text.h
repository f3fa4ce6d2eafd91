#pragma once

#include <string>

#include "protocol/trial_directory.h"

namespace petlab::protocol {

/// The text of `trial.json` for callers with their own way of writing (write_trial_file syncs it).
/// Throws base::Error naming `file` if a path or text is not UTF-8.
std::string trial_file_text(const std::filesystem::path& file, const TrialFile& content);

}  // namespace petlab::protocol
