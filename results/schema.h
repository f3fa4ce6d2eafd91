#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "results/store.h"

namespace petlab::results::internal {

class Connection;

/// Marks a SQLite file as petlab's (PRAGMA application_id): "petl".
inline constexpr std::int32_t kApplicationId = 0x7065746c;
/// A field of a trial's configuration that is a column of `trials` and of the views.
struct FieldColumn {
  std::string column;             // training_learning_rate
  std::vector<std::string> path;  // {"training", "learning_rate"}
  std::string type;               // TEXT, REAL, INTEGER
};

/// Every field that a configuration can have: `tasks` (names joined by commas) in place of task and
/// tasks, then the rows of sweeps::fields() by their place. The free group user is no part of it.
const std::vector<FieldColumn>& field_columns();

/// Makes a new database in its final form, so that nobody sees a half-made one; returns false
/// where another process was faster. Throws Error.
bool create_database(const std::filesystem::path& file, bool rollback_journal);

/// The version of an opened database. Throws Error where it is no petlab database, of a newer
/// version, or of one that this petlab cannot update.
std::int64_t checked_version(Connection& connection);

/// Changes the journal mode of a database that came from another file system.
void use_journal(Connection& connection, bool rollback);

/// Turns the tables of that version into this petlab's, within a transaction of the caller's.
void apply_steps(Connection& connection, std::int64_t version);

/// Updates a database of an earlier version: all or nothing. A copy of what it was is next to it
/// before (`petlab.db.v1.bak`). Throws Error, also where there is no space for the copy.
void update(Connection& connection);

}  // namespace petlab::results::internal
