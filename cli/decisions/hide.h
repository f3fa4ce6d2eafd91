#pragma once

#include <functional>

#include "cli/options/subcommand.h"

namespace petlab::cli {

/// Row of the table of subcommands: `petlab hide`.
std::function<int()> make_hide(CLI::App& app, Streams streams);
/// Row of the table of subcommands: `petlab unhide`.
std::function<int()> make_unhide(CLI::App& app, Streams streams);

}  // namespace petlab::cli
