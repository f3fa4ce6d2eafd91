#pragma once

#include <functional>

#include "cli/options/subcommand.h"

namespace petlab::cli {

/// `petlab schema`: prints JSON Schemas of the files that users write.
std::function<int()> make_schema(CLI::App& app, Streams streams);

}  // namespace petlab::cli
