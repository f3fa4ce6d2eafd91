#pragma once

#include <functional>

#include "cli/options/subcommand.h"

namespace petlab::cli {

/// `petlab init`: writes a starter sweep for the backbones and data on this machine, and on request
/// a task declaration for a data file and a worker in Python.
std::function<int()> make_init(CLI::App& app, Streams streams);

}  // namespace petlab::cli
