#pragma once

#include <functional>

#include "cli/options/subcommand.h"

namespace petlab::cli {

/// `petlab fetch`: what it reads from elsewhere, brought to where it looks for it.
std::function<int()> make_fetch(CLI::App& app, Streams streams);

}  // namespace petlab::cli
