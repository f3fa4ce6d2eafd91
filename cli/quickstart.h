#pragma once

#include <functional>

#include "cli/options/subcommand.h"

namespace petlab::cli {

/// `petlab quickstart`: downloads the samples, trains a small sweep on them with `petlab run` and
/// writes its report with `petlab report`.
std::function<int()> make_quickstart(CLI::App& app, Streams streams);

}  // namespace petlab::cli
