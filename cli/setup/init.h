#pragma once

#include <functional>

#include "cli/options/subcommand.h"

namespace petlab::cli {

/// `petlab init`: a first sweep file, for the backbones and data that this machine has.
std::function<int()> make_init(CLI::App& app, Streams streams);

}  // namespace petlab::cli
