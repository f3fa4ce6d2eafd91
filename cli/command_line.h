#pragma once

#include <span>
#include <string>
#include <vector>

#include "cli/options/subcommand.h"

namespace petlab::cli {

/// All subcommands, in the order in which the help lists them.
std::span<const Subcommand> subcommands();

/// Moves --db and --runs from before the subcommand to the end of its words, where its parser looks
/// for them.
std::vector<std::string> subcommand_first(std::vector<std::string> words);

/// Parses the command line and runs the subcommand, one of `table`. Prints errors as one line,
/// `petlab: …`.
int run(std::span<const Subcommand> table, int argc, const char* const* argv, Streams streams);
/// Runs petlab with all its subcommands.
int run(int argc, const char* const* argv, Streams streams);

}  // namespace petlab::cli
