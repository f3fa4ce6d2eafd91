#pragma once

#include <functional>

#include "cli/options/subcommand.h"

namespace petlab::cli {

/// `petlab report NAME|FILE`: a table from the database (docs/reports.md).
std::function<int()> make_report(CLI::App& app, Streams streams);

}  // namespace petlab::cli
