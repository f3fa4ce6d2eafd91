#pragma once

#include <functional>

#include "cli/options/subcommand.h"

namespace petlab::cli {

/// `petlab serve`: the reports of a database as a page that stays open, live while sweeps run.
std::function<int()> make_serve(CLI::App& app, Streams streams);

}  // namespace petlab::cli
