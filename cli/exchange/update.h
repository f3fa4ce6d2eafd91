#pragma once

#include <functional>

#include "cli/options/subcommand.h"

namespace petlab::cli {

/// `petlab db update`: updates a database of an earlier version, as does every command that writes.
std::function<int()> make_update(CLI::App& app, Streams streams);

}  // namespace petlab::cli
