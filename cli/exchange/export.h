#pragma once

#include <functional>

#include "cli/options/subcommand.h"

namespace petlab::cli {

std::function<int()> make_export(CLI::App& app, Streams streams);

}  // namespace petlab::cli
