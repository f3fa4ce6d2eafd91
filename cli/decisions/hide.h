#pragma once

#include <functional>

#include "cli/options/subcommand.h"

namespace petlab::cli {

/// `petlab hide`, and with --undo its opposite.
std::function<int()> make_hide(CLI::App& app, Streams streams);

}  // namespace petlab::cli
