#pragma once

#include <functional>

#include "cli/options/subcommand.h"

namespace petlab::cli {

/// `petlab ingest`: reads a runs folder into the database; with --rebuild makes the database anew.
std::function<int()> make_ingest(CLI::App& app, Streams streams);

}  // namespace petlab::cli
