#pragma once

#include <functional>

#include "cli/options/subcommand.h"

namespace petlab::cli {

/// `petlab doctor`: checks this machine, shows what petlab would use and reports what is missing.
std::function<int()> make_doctor(CLI::App& app, Streams streams);

}  // namespace petlab::cli
