#pragma once

#include "cli/options/subcommand.h"

namespace petlab::cli {

/// `petlab explain TRIAL`.
std::function<int()> make_explain(CLI::App& app, Streams streams);

}  // namespace petlab::cli
