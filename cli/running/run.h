#pragma once

#include <functional>

#include "cli/options/subcommand.h"

namespace petlab::cli {

/// Row of the table of subcommands: `petlab run`.
std::function<int()> make_run(CLI::App& app, Streams streams);

}  // namespace petlab::cli
