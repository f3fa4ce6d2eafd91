#pragma once

#include <filesystem>
#include <string>

namespace CLI {
class App;
}

namespace petlab::cli {

/// How a command uses its database.
enum class DatabaseUse {
  existing,    ///< The command reads it or adds to it.
  may_create,  ///< The command creates it if there is none.
  always_new   ///< The command creates it, so it ignores databases in other folders.
};

/// The inputs that determine a command's database. Relative paths are relative to `folder`.
struct DatabaseSearch {
  std::string named;                 // --db; empty: not given
  std::string variable;              // PETLAB_DB; empty: not set
  std::filesystem::path sweep_file;  // empty: the command has none
  std::filesystem::path folder;      // current folder at start, absolute
};

struct FoundDatabase {
  std::filesystem::path file;
  std::string note;  // for the user if the place is unusual; else empty
};

/// Finds the database by one rule for all commands (docs/guides/run-a-sweep.md), in this order:
/// --db; PETLAB_DB; a database with the sweep file's name next to it, with a note; the nearest
/// petlab.db in the folder or its parents; for commands that create a database, petlab.db in the
/// folder. Parents that every user may write to are skipped, because their database may be another
/// user's. Throws std::invalid_argument if there is none, naming the databases in the folder.
FoundDatabase find_database(const DatabaseSearch& search, DatabaseUse use);

/// The same, with the environment and current folder of this process.
FoundDatabase find_database(const std::string& named, DatabaseUse use,
                            const std::filesystem::path& sweep_file = {});

/// The database that a command without a sweep file reads.
std::filesystem::path database_to_read(const std::filesystem::path& named);

/// Makes known what workers declared in that database: kinds, fields and metrics. Does nothing if
/// `named` is empty and there is no database.
void learn_declared_words(const std::filesystem::path& named);

/// --db, for commands that use an existing database.
void add_database_option(CLI::App& app, std::string& database);
void add_database_option(CLI::App& app, std::filesystem::path& database);

/// The runs folder of a database, which need not exist: `named`, else the recorded one, else the
/// folder named after the database next to it.
std::filesystem::path runs_folder_of(const std::filesystem::path& database,
                                     const std::filesystem::path& named);

/// True if the database exists and records its runs folder.
bool remembers_runs(const std::filesystem::path& database);

/// The notice of commands that continue without the database's runs folder.
std::string runs_folder_gone();

/// Throws results::Error if the runs folder of a database does not exist.
void require_runs_folder(const std::filesystem::path& runs, const std::filesystem::path& database);

}  // namespace petlab::cli
