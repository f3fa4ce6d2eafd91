#include "cli/options/database_option.h"

#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

namespace petlab::cli {
namespace {

namespace fs = std::filesystem;
using petlab::testing::TempDir;

// One case of the rule: the command is started in project/sub.
struct DatabaseCase {
  const char* name;
  std::vector<const char*> files;  // relative to the temporary folder
  const char* named;               // --db
  const char* variable;            // PETLAB_DB
  const char* sweep_file;
  DatabaseUse use;
  const char* database;  // TEMP/… is absolute; empty: none is found
  const char* message;   // the note, or the beginning of the error
};

constexpr auto kExisting = DatabaseUse::existing;
constexpr auto kCreate = DatabaseUse::may_create;
constexpr auto kNew = DatabaseUse::always_new;

const std::vector<const char*> kHere = {"project/sub/petlab.db"};
const std::vector<const char*> kAbove = {"project/petlab.db"};
const std::vector<const char*> kBoth = {"project/sub/petlab.db", "project/petlab.db"};
const std::vector<const char*> kBeside = {"project/sweeps/lr.db"};
const std::vector<const char*> kBesideAndAbove = {"project/sweeps/lr.db", "project/petlab.db"};
const std::vector<const char*> kOthers = {"project/sub/two.db", "project/sub/one.db"};

constexpr const char* kNone =
    "found no petlab.db in this folder or above it; petlab run creates one. To use another "
    "database, pass --db or set PETLAB_DB";

// clang-format off
const DatabaseCase kCases[] = {
  {"the option beats everything", kBesideAndAbove, "x.db", "y.db", "../sweeps/lr.yaml", kExisting, "x.db", ""},
  {"the option need not exist", {}, "x.db", "", "", kExisting, "x.db", ""},
  {"the option of a new database", kHere, "x.db", "y.db", "", kNew, "x.db", ""},
  {"the variable beats files", kBesideAndAbove, "", "../petlab.db", "../sweeps/lr.yaml", kExisting, "../petlab.db", ""},
  {"the variable of a command that creates", kHere, "", "y.db", "", kCreate, "y.db", ""},
  {"the variable of a new database", kHere, "", "y.db", "", kNew, "y.db", ""},
  {"the variable names nothing", kHere, "", "y.db", "", kExisting, "",
   "PETLAB_DB is y.db, which does not exist; petlab run creates it, --db names another database"},
  {"here", kHere, "", "", "", kExisting, "petlab.db", ""},
  {"here before above", kBoth, "", "", "", kExisting, "petlab.db", ""},
  {"above", kAbove, "", "", "", kExisting, "TEMP/project/petlab.db", ""},
  {"above, for a command that creates", kAbove, "", "", "../sweeps/lr.yaml", kCreate, "TEMP/project/petlab.db", ""},
  {"two folders above", {"petlab.db"}, "", "", "", kExisting, "TEMP/petlab.db", ""},
  {"a new database is created here", kAbove, "", "", "", kNew, "petlab.db", ""},
  {"next to the sweep file", kBeside, "", "", "../sweeps/lr.yaml", kExisting, "../sweeps/lr.db",
   "using ../sweeps/lr.db, which is next to the sweep file"},
  {"next to the sweep file and above", kBesideAndAbove, "", "", "../sweeps/lr.yaml", kCreate, "../sweeps/lr.db",
   "using ../sweeps/lr.db, which is next to the sweep file, instead of TEMP/project/petlab.db; --db selects another"},
  {"next to another sweep file", kBesideAndAbove, "", "", "../sweeps/other.yaml", kExisting, "TEMP/project/petlab.db", ""},
  {"a sweep file with the usual name", kHere, "", "", "petlab.yaml", kExisting, "petlab.db", ""},
  {"none, for a command that creates", {}, "", "", "../sweeps/lr.yaml", kCreate, "petlab.db", ""},
  {"none", {}, "", "", "", kExisting, "", kNone},
  {"none, with a sweep file", {}, "", "", "../sweeps/lr.yaml", kExisting, "", kNone},
  {"two candidates with other names", kOthers, "", "", "", kExisting, "",
   "found no petlab.db in this folder or above it; petlab run creates one. To use another "
   "database, pass --db or set PETLAB_DB (this folder has one.db, two.db)"},
};
// clang-format on

std::string with_folder(std::string text, const fs::path& folder) {
  for (std::size_t at = 0; (at = text.find("TEMP", at)) != std::string::npos;) {
    text.replace(at, 4, folder.string());
  }
  return text;
}

TEST_CASE("One rule finds the database of every command", "[cli]") {
  for (const DatabaseCase& one : kCases) {
    INFO(one.name);
    const TempDir temp;
    fs::create_directories(temp.path() / "project/sub");
    fs::create_directories(temp.path() / "project/sweeps");
    for (const char* file : one.files) temp.write(file, "");
    const DatabaseSearch search{one.named, one.variable, one.sweep_file,
                                temp.path() / "project/sub"};
    const std::string message = with_folder(one.message, temp.path());
    if (*one.database == '\0') {
      CHECK_THROWS_WITH(find_database(search, one.use), message);
      continue;
    }
    const FoundDatabase found = find_database(search, one.use);
    CHECK(found.file.string() == with_folder(one.database, temp.path()));
    CHECK(found.note == message);
  }
}

TEST_CASE("A database in a parent folder that every user can write is not used", "[cli]") {
  const TempDir temp;
  fs::create_directories(temp.path() / "project/sub");
  temp.write("project/petlab.db", "");
  const DatabaseSearch search{"", "", "", temp.path() / "project/sub"};
  CHECK(find_database(search, kCreate).file == temp.path() / "project/petlab.db");
  fs::permissions(temp.path() / "project", fs::perms::others_write, fs::perm_options::add);
  CHECK(find_database(search, kCreate).file == "petlab.db");
  // In the current folder it is used because the user chose that folder.
  const DatabaseSearch inside{"", "", "", temp.path() / "project"};
  CHECK(find_database(inside, kExisting).file == "petlab.db");
}

TEST_CASE("A link to a missing database still counts", "[cli]") {
  const TempDir temp;
  fs::create_directory(temp.path() / "sub");
  fs::create_symlink("nowhere.db", temp.path() / "petlab.db");
  const DatabaseSearch search{"", "", "", temp.path() / "sub"};
  CHECK(find_database(search, kCreate).file == temp.path() / "petlab.db");
}

}  // namespace
}  // namespace petlab::cli
