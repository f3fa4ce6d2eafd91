#pragma once

#include <functional>

#include "cli/options/subcommand.h"

namespace petlab::cli {

/// `petlab db gc`.
std::function<int()> make_gc(CLI::App& app, Streams streams);

}  // namespace petlab::cli
