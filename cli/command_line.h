#pragma once

#include <span>

#include "cli/options/subcommand.h"

namespace petlab::cli {

/// All subcommands, in the order in which the help lists them.
std::span<const Subcommand> subcommands();

/// Parses the command line and runs the subcommand. Prints one line `petlab: …` for an error.
int run(int argc, const char* const* argv, Streams streams);

}  // namespace petlab::cli
