#pragma once

#include <functional>

#include "cli/options/subcommand.h"

namespace petlab::cli {

std::function<int()> make_import(CLI::App& app, Streams streams);

}  // namespace petlab::cli
