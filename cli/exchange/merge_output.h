#pragma once

#include <filesystem>
#include <string>

#include "cli/options/subcommand.h"
#include "cli/options/trial_arguments.h"
#include "exchange/merge_runs.h"

namespace petlab::cli {

/// runs_path() of a database that receives results. A folder that the database records must exist;
/// any other is created later. Throws results::Error.
std::filesystem::path runs_to_fill(const StoredArguments& arguments);

/// Prints the result of `merge` and `import`: a summary line and a line for each conflict and each
/// skipped item, or one JSON object. Returns kSomeFailed if there are any of these.
int print_merge(const exchange::MergeResult& merged, const std::string& database,
                const std::string& source, bool json, Streams streams);

}  // namespace petlab::cli
