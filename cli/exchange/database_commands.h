#pragma once

#include <functional>

#include "cli/options/subcommand.h"

namespace petlab::cli {

/// `petlab db`: the commands that maintain a database and exchange results with others.
std::function<int()> make_db(CLI::App& app, Streams streams);

}  // namespace petlab::cli
