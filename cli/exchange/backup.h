#pragma once

#include <functional>

#include "cli/options/subcommand.h"

namespace petlab::cli {

/// `petlab db backup`: a copy of a database that is in use.
std::function<int()> make_backup(CLI::App& app, Streams streams);

}  // namespace petlab::cli
