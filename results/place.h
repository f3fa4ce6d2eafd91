#pragma once

#include <filesystem>
#include <string>

namespace petlab::results {

/// Properties of a database's folder.
struct DatabasePlace {
  std::string file_system;  // "ext4", "nfs4"; empty if unknown
  /// Shared between machines: one process at a time writes, with a rollback journal.
  bool network = false;
  /// Why no database can be created and written there; empty if it worked.
  std::string problem;
  /// What is wrong with its locks; empty if a second process was kept out while the first wrote.
  std::string lock_problem;
};

/// Creates a scratch database next to `database`, lets two processes write it in turn, and removes
/// it. Does not touch the database itself. Forks: call it while this process has no other threads.
/// Throws Error if no process can be created.
DatabasePlace examine_place(const std::filesystem::path& database);

}  // namespace petlab::results
