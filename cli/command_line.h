#pragma once

#include <span>
#include <string>
#include <vector>

#include "cli/options/subcommand.h"

namespace petlab::cli {

/// All subcommands, in the order in which the help lists them.
std::span<const Subcommand> subcommands();

/// The words with `--db` and `--runs` that stand before the subcommand moved behind its own words,
/// where its parser looks for them.
std::vector<std::string> subcommand_first(std::vector<std::string> words);

/// Parses the command line and runs the subcommand, one of `table`. Prints one line `petlab: …` for
/// an error.
int run(std::span<const Subcommand> table, int argc, const char* const* argv, Streams streams);
/// With all of petlab's.
int run(int argc, const char* const* argv, Streams streams);

}  // namespace petlab::cli
