#pragma once

#include <functional>

#include "cli/options/subcommand.h"

namespace petlab::cli {

/// `petlab query`: one SELECT on the database, read-only.
std::function<int()> make_query(CLI::App& app, Streams streams);

}  // namespace petlab::cli
