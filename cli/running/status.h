#pragma once

#include "cli/options/subcommand.h"

namespace petlab::cli {

/// `petlab status [FILE]`.
std::function<int()> make_status(CLI::App& app, Streams streams);

}  // namespace petlab::cli
