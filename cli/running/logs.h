#pragma once

#include "cli/options/subcommand.h"

namespace petlab::cli {

/// `petlab logs [-f] TRIAL`.
std::function<int()> make_logs(CLI::App& app, Streams streams);

}  // namespace petlab::cli
