#pragma once

#include <functional>

#include "cli/options/subcommand.h"

namespace petlab::cli {

/// `petlab fetch`, including its downloads.
std::function<int()> make_downloads(CLI::App& app, Streams streams);

}  // namespace petlab::cli
