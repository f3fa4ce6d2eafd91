#pragma once

#include "cli/options/trial_arguments.h"

namespace petlab::cli {

/// `petlab db rebuild`: creates the database from the runs folder.
std::function<int()> make_rebuild(CLI::App& app, Streams streams);

/// `petlab db import` without a source: adds the contents of the database's own runs folder to it.
int import_own_runs(const StoredArguments& arguments, bool json, Streams streams);

}  // namespace petlab::cli
