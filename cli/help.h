#pragma once

#include <functional>

#include "cli/options/subcommand.h"

namespace petlab::cli {

/// `petlab help [COMMAND|fields]`, and with --man the manual page.
std::function<int()> make_help(CLI::App& app, Streams streams);

}  // namespace petlab::cli
