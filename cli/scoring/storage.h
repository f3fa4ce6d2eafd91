#pragma once

#include <functional>

#include "cli/options/subcommand.h"

namespace petlab::cli {

/// `petlab storage`: the bits of a trained module, of a configuration or of an artifact.
std::function<int()> make_storage(CLI::App& app, Streams streams);

}  // namespace petlab::cli
