#pragma once

#include <functional>

#include "cli/options/subcommand.h"

namespace petlab::cli {

/// `petlab doctor`: what this machine has, what petlab would use of it, and what is missing.
std::function<int()> make_doctor(CLI::App& app, Streams streams);

}  // namespace petlab::cli
