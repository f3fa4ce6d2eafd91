#pragma once

#include <functional>

#include "cli/options/subcommand.h"

namespace petlab::cli {

/// `petlab completion bash|zsh|fish`: prints a script for the shell, which calls petlab for the
/// possible next words.
std::function<int()> make_completion(CLI::App& app, Streams streams);

}  // namespace petlab::cli
