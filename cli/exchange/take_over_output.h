#pragma once

#include <filesystem>
#include <string>

#include "cli/options/subcommand.h"
#include "cli/options/trial_arguments.h"
#include "orchestrator/exchange/take_over.h"

namespace petlab::cli {

/// The runs folder of a database into which something is to come: runs_path(), which need not be
/// there yet; but the one that the database remembers must be. Throws results::Error.
std::filesystem::path runs_to_fill(const StoredArguments& arguments);

/// Prints what `merge` and `import` did: one line and a line for each conflict and each thing left,
/// or one JSON object. The exit code: kSomeFailed where there is any of those.
int print_taken_over(const orchestrator::TakenOver& taken, const std::string& database,
                     const std::string& source, bool json, Streams streams);

}  // namespace petlab::cli
