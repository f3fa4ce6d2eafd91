#pragma once

#include <functional>

#include "cli/options/subcommand.h"

namespace petlab::cli {

/// `petlab show TRIAL`: all that is known of a trial.
std::function<int()> make_show(CLI::App& app, Streams streams);

}  // namespace petlab::cli
