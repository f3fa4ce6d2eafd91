#pragma once

#include <filesystem>
#include <string>

namespace petlab::cli {

/// The database that a command reads: what the user named with --db, else `petlab.db` in the
/// current folder. Throws std::invalid_argument where neither is, naming the databases that the
/// folder holds.
std::filesystem::path database_to_read(const std::filesystem::path& named);

/// The runs folder that goes with a database, which need not exist: `named`, else the one that the
/// database remembers, else `otherwise`.
std::filesystem::path runs_folder_of(const std::filesystem::path& database,
                                     const std::filesystem::path& named,
                                     const std::filesystem::path& otherwise);

/// Whether the database is there and remembers its runs folder.
bool remembers_runs(const std::filesystem::path& database);

/// What commands say that go on without the runs folder of a database.
std::string runs_folder_gone();

/// Throws results::Error where the runs folder of a database is not there.
void require_runs_folder(const std::filesystem::path& runs, const std::filesystem::path& database);

}  // namespace petlab::cli
