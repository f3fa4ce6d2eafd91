#pragma once

#include "cli/options/subcommand.h"

namespace petlab::cli {

/// `petlab stop [FILE] [--now]`.
std::function<int()> make_stop(CLI::App& app, Streams streams);

}  // namespace petlab::cli
