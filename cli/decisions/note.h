#pragma once

#include <functional>

#include "cli/options/subcommand.h"

namespace petlab::cli {

/// `petlab note`.
std::function<int()> make_note(CLI::App& app, Streams streams);

}  // namespace petlab::cli
