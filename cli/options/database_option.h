#pragma once

#include <filesystem>
#include <string>

namespace CLI {
class App;
}

namespace petlab::cli {

/// What a command needs of its database.
enum class DatabaseUse {
  existing,    ///< The command reads it or adds to it.
  may_create,  ///< The command creates it if there is none.
  always_new   ///< The command creates it, so it ignores databases in other folders.
};

/// What decides where a command's database is. Relative paths are relative to `folder`.
struct DatabaseSearch {
  std::string named;                 // --db; empty: not given
  std::string variable;              // PETLAB_DB; empty: not set
  std::filesystem::path sweep_file;  // empty: the command has none
  std::filesystem::path folder;      // in which the command was started, absolute
};

struct FoundDatabase {
  std::filesystem::path file;
  std::string note;  // for the user, if the place is not the usual one; else empty
};

/// The one rule for all commands (docs/guides/run-a-sweep.md): --db; PETLAB_DB; a database next to
/// the sweep file with the file's name, with a note; the nearest petlab.db in the folder or above
/// it; for commands that create a database, petlab.db in the folder. Folders above to which every
/// user may write are skipped: the database in them may be anybody's. Throws std::invalid_argument
/// if there is none, naming the databases in the folder.
FoundDatabase find_database(const DatabaseSearch& search, DatabaseUse use);

/// The same for this process: its environment and current folder.
FoundDatabase find_database(const std::string& named, DatabaseUse use,
                            const std::filesystem::path& sweep_file = {});

/// The database that a command without a sweep file reads.
std::filesystem::path database_to_read(const std::filesystem::path& named);

/// --db, for commands that use an existing database.
void add_database_option(CLI::App& app, std::string& database);
void add_database_option(CLI::App& app, std::filesystem::path& database);

/// The runs folder that goes with a database, which need not exist: `named`, else the one that the
/// database remembers, else next to the database with its name.
std::filesystem::path runs_folder_of(const std::filesystem::path& database,
                                     const std::filesystem::path& named);

/// Whether the database is there and remembers its runs folder.
bool remembers_runs(const std::filesystem::path& database);

/// What commands say that go on without the runs folder of a database.
std::string runs_folder_gone();

/// Throws results::Error where the runs folder of a database is not there.
void require_runs_folder(const std::filesystem::path& runs, const std::filesystem::path& database);

}  // namespace petlab::cli
