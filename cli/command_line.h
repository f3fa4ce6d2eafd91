#pragma once

#include <span>

#include "cli/options/subcommand.h"

namespace petlab::cli {

/// All subcommands, in the order in which the help lists them.
std::span<const Subcommand> subcommands();

/// Parses the command line and runs the subcommand, one of `table`. Prints one line `petlab: …` for
/// an error.
int run(std::span<const Subcommand> table, int argc, const char* const* argv, Streams streams);
/// With all of petlab's.
int run(int argc, const char* const* argv, Streams streams);

}  // namespace petlab::cli
