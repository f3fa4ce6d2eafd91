#pragma once

#include <filesystem>
#include <string>

#include "results/error.h"

namespace petlab::results {

/// Another process holds a database on a network file system, where only one may write at a time.
class DatabaseHeld : public Error {
 public:
  using Error::Error;
};

/// Frees a database that a process of this host held, which is dead. Does nothing if no process of
/// it holds the database. Throws Error if the lock's file cannot be written.
void release_database_of(const std::string& host, const std::filesystem::path& database);

}  // namespace petlab::results
