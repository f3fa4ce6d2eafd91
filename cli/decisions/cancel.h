#pragma once

#include "cli/options/subcommand.h"

namespace petlab::cli {

/// `petlab cancel TRIAL…`.
std::function<int()> make_cancel(CLI::App& app, Streams streams);

}  // namespace petlab::cli
