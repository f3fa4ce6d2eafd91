#pragma once

#include <filesystem>

#include "cli/options/subcommand.h"
#include "results/store.h"

namespace petlab::cli {

/// Opens a database to write to it. Where that brought one of an earlier petlab up to date, says
/// where it is as it was.
results::Store open_to_write(const std::filesystem::path& database, Streams streams);

}  // namespace petlab::cli
