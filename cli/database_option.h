#pragma once

#include <filesystem>

namespace petlab::cli {

/// The database that a command reads: what the user named with --db, else `petlab.db` in the
/// current folder. Throws std::invalid_argument where neither is, naming the databases that the
/// folder holds.
std::filesystem::path database_to_read(const std::filesystem::path& named);

}  // namespace petlab::cli
