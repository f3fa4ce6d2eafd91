#pragma once

#include <filesystem>

#include "cli/options/subcommand.h"

namespace petlab::cli {

/// Downloads the quickstart's backbone and data to PETLAB_HOME (`home`) unless they exist, with
/// the Python of petlab's tools (base/tools_python.h). That Python prints to the standard output of
/// this process. Returns the exit code: kInterrupted after SIGINT or SIGTERM, kSomeFailed after an
/// error, which was printed. Throws base::Error if Python cannot be started.
int get_samples(const std::filesystem::path& home, Streams streams);

}  // namespace petlab::cli
