#pragma once

#include <functional>

#include "cli/options/subcommand.h"

namespace petlab::cli {

/// `petlab completion bash|zsh|fish`: a script for the shell, which asks petlab itself for the
/// words that may come next.
std::function<int()> make_completion(CLI::App& app, Streams streams);

}  // namespace petlab::cli
