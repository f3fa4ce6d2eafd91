#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "results/store.h"
#include "sweeps/fields.h"

namespace petlab::results::internal {

class Connection;

/// Identifies petlab's SQLite files (PRAGMA application_id): "petl".
inline constexpr std::int32_t kApplicationId = 0x7065746c;
/// A configuration field with a column in `trials` and in the views.
struct FieldColumn {
  std::string column;             // training_learning_rate
  std::vector<std::string> path;  // {"training", "learning_rate"}
  std::string type;               // TEXT, REAL, INTEGER
};

/// All fields of configurations: `tasks` (names joined by commas) instead of task and tasks, then
/// the built-in rows of sweeps::fields() by place. Excludes the free group user and the fields that
/// workers declare, which the views read from configurations.
const std::vector<FieldColumn>& field_columns();

/// The path of a field in a configuration, for SQLite's JSON functions: `$.module.targets`.
std::string json_path(const sweeps::Field& field);

/// Learns the catalogs that the database records (sweeps/worker_catalog.h). Throws Error if they
/// contradict those of another database.
void learn_catalogs(Connection& connection);

/// Adds the columns of the database's catalogs to the views. Must be called in a transaction that
/// recorded a catalog.
void extend_views(Connection& connection);

/// Creates a new database; other processes never see it incomplete. Returns false if another
/// process created it first. Throws Error.
bool create_database(const std::filesystem::path& file, bool rollback_journal);

/// The version of an open database. Throws Error if it is not petlab's, newer, or too old to be
/// updated.
std::int64_t checked_version(Connection& connection);

/// Changes the journal mode of a database that was moved from another file system.
void use_journal(Connection& connection, bool rollback);

/// Updates the tables from `version` to this petlab's version. Must be called in a transaction.
void apply_steps(Connection& connection, std::int64_t version);

/// Updates a database of an earlier version in one transaction, after copying it
/// (`petlab.db.v1.bak`). Throws Error, also if there is no space for the copy.
void update(Connection& connection);

}  // namespace petlab::results::internal
