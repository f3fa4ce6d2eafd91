#pragma once

#include <functional>

#include "cli/options/subcommand.h"

namespace petlab::cli {

/// `petlab history TRIAL`: the values of a metric, step by step.
std::function<int()> make_history(CLI::App& app, Streams streams);

}  // namespace petlab::cli
