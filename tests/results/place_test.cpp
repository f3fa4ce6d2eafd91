#include "results/place.h"

#include <fstream>

#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

namespace petlab::results {
namespace {

TEST_CASE("A folder where a database can be written has no problem", "[results]") {
  const testing::TempDir root;
  const DatabasePlace place = examine_place(root.path() / "petlab.db");
  CHECK(place.problem == "");
  CHECK(place.lock_problem == "");
  CHECK_FALSE(place.file_system.empty());
  CHECK_FALSE(place.network);
  CHECK(std::filesystem::is_empty(root.path()));
}

TEST_CASE("A missing folder is reported with the database", "[results]") {
  const testing::TempDir root;
  const std::filesystem::path database = root.path() / "none/petlab.db";
  CHECK(examine_place(database).problem == database.string() +
                                               ": cannot make it: there is no folder " +
                                               database.parent_path().string());
}

TEST_CASE("A linked database is examined at its target", "[results]") {
  const testing::TempDir root;
  std::filesystem::create_directories(root.path() / "there");
  std::filesystem::create_symlink(root.path() / "there/real.db", root.path() / "petlab.db");
  CHECK(examine_place(root.path() / "petlab.db").problem == "");
  CHECK(std::filesystem::is_empty(root.path() / "there"));
}

}  // namespace
}  // namespace petlab::results
