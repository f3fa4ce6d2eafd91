#pragma once

#include "cli/options/subcommand.h"

namespace petlab::cli {

/// `petlab retry TRIAL… [--declare-dead]`.
std::function<int()> make_retry(CLI::App& app, Streams streams);

}  // namespace petlab::cli
