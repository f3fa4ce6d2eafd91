#pragma once

#include <functional>

#include "cli/options/subcommand.h"

namespace petlab::cli {

/// `petlab results`: means over seeds without SQL.
std::function<int()> make_results(CLI::App& app, Streams streams);

}  // namespace petlab::cli
