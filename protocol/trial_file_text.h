#pragma once

#include <string>

#include "protocol/trial_directory.h"

namespace petlab::protocol {

/// The text of `trial.json`, for who writes it in a way of its own (write_trial_file syncs it).
/// Throws base::Error naming `file` for a path or text that is no UTF-8.
std::string trial_file_text(const std::filesystem::path& file, const TrialFile& content);

}  // namespace petlab::protocol
