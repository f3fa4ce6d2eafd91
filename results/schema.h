#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "results/store.h"

namespace petlab::results::internal {

class Connection;

/// Marks a SQLite file as petlab's (PRAGMA application_id): "petl".
inline constexpr std::int32_t kApplicationId = 0x7065746c;
/// PRAGMA user_version. Columns for new fields of the configuration are added without a new
/// version.
inline constexpr std::int32_t kSchemaVersion = 1;

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

/// Throws Error unless the opened database is petlab's and of this version.
void check_version(Connection& connection);

/// Throws Error where an earlier petlab of this version made it and none has written to it since.
void check_columns(Connection& connection);

/// Changes the journal mode of a database that came from another file system.
void use_journal(Connection& connection, bool rollback);

/// Adds the tables and columns that a newer petlab knows of, and makes the views fit: all or
/// nothing. What the database was before is copied beside it, where it has trials; the copy's name.
/// Throws Error, also where there is no space for the copy.
std::optional<std::filesystem::path> bring_up_to_date(Connection& connection);

/// Whether there is a table or view of that name: a database that is only read may be of an earlier
/// state of this version.
bool has_table(Connection& connection, std::string_view name);
/// Whether it knows of results that are to be made again and of hidden trials.
bool knows_care(Connection& connection);
bool has_column(Connection& connection, std::string_view table, std::string_view name);
bool has_column_of_attempts(Connection& connection, std::string_view name);

}  // namespace petlab::results::internal
