#include "results/backup.h"

#include <filesystem>

#include "tests/results/helpers.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

namespace petlab::results {

using testing::TempDir;
using Lines = std::vector<std::string>;

TEST_CASE("A database that is being written is copied in a consistent state", "[results]") {
  const TempDir folder;
  const auto file = folder.path() / "used.db";
  const auto copy = folder.path() / "copy.db";
  Store store(file);
  {
    Batch batch = store.begin();
    batch.record_trial(trial_row("t1"));
    batch.commit();
  }
  Batch batch = store.begin();
  batch.record_trial(trial_row("t2"));
  back_up(file, copy);
  batch.commit();
  CHECK(rows(copy, "SELECT trial_id FROM trials") == Lines{"t1"});
  CHECK(rows(file, "SELECT trial_id FROM trials ORDER BY 1") == Lines{"t1", "t2"});
  // The copy is a database like any other.
  Store another(copy);
  Batch of_copy = another.begin();
  of_copy.record_trial(trial_row("t3"));
  of_copy.commit();
  CHECK(rows(copy, "SELECT count(*) FROM trials") == Lines{"2"});
}

TEST_CASE("A copy never replaces a file, and only databases are copied", "[results]") {
  const TempDir folder;
  const auto file = folder.path() / "used.db";
  { const Store store(file); }
  const auto existing = folder.write("taken.db", "mine");
  CHECK_THROWS_WITH(back_up(file, existing), testing::has_text("taken.db: the file exists"));
  CHECK(testing::read_file(existing) == "mine");
  CHECK_THROWS_WITH(back_up(folder.path() / "none.db", folder.path() / "copy.db"),
                    testing::has_text("none.db"));
  CHECK_THROWS_WITH(back_up(existing, folder.path() / "copy.db"), testing::has_text("taken.db"));
  CHECK_THROWS_WITH(back_up(file, folder.path() / "no/copy.db"), testing::has_text("no/copy.db"));
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    const std::string name = entry.path().filename().string();
    INFO(name);
    CHECK((name.starts_with("used.db") || name == "taken.db"));
  }
}

}  // namespace petlab::results
