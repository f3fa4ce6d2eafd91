#pragma once

#include <functional>

#include "cli/options/subcommand.h"

namespace petlab::cli {

/// Row of the table of subcommands: `petlab plan`.
std::function<int()> make_plan(CLI::App& app, Streams streams);

}  // namespace petlab::cli
