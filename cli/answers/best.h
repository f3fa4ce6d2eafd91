#pragma once

#include <functional>

#include "cli/options/subcommand.h"

namespace petlab::cli {

/// `petlab best`: the best trials of each task, and how to use what they trained.
std::function<int()> make_best(CLI::App& app, Streams streams);

}  // namespace petlab::cli
