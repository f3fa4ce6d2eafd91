#pragma once

#include <functional>

#include "cli/options/subcommand.h"

namespace petlab::cli {

/// `petlab compare A B…`: paired over seeds and tasks.
std::function<int()> make_compare(CLI::App& app, Streams streams);

}  // namespace petlab::cli
