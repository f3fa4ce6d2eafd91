#pragma once

#include <functional>

#include "cli/options/subcommand.h"

namespace petlab::cli {

/// `petlab diff TRIAL TRIAL`: in what two trials differ.
std::function<int()> make_diff(CLI::App& app, Streams streams);

}  // namespace petlab::cli
