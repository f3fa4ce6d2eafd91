#pragma once

#include <functional>

#include "cli/subcommand.h"

namespace petlab::cli {

std::function<int()> make_check(CLI::App& app, Streams streams);

}  // namespace petlab::cli
