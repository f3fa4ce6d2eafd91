#pragma once

#include <filesystem>
#include <string>

namespace petlab::results {

/// What the folder of a database is like.
struct DatabasePlace {
  std::string file_system;  // "ext4", "nfs4"; empty: it cannot be told
  /// Between machines: one process at a time writes, with a rollback journal.
  bool network = false;
  /// Why no database can be made and written there; empty: one was.
  std::string problem;
  /// What is wrong with its locks; empty: a second process was kept out while the first wrote.
  std::string lock_problem;
};

/// Makes a database beside `database`, has two processes write it in turn, and removes it; the
/// database itself is not touched. Forks: call it while this process has no other threads. Throws
/// Error where no process can be made.
DatabasePlace examine_place(const std::filesystem::path& database);

}  // namespace petlab::results
