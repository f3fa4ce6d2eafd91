#pragma once

#include <functional>

#include "cli/options/subcommand.h"

namespace petlab::cli {

/// Row of the table of subcommands: `petlab discard`.
std::function<int()> make_discard(CLI::App& app, Streams streams);

}  // namespace petlab::cli
