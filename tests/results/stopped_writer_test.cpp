// Who stands still in the middle of a change to the shared index (a process that was stopped, or
// has no processor) keeps the others waiting, and is no error.
#include <SQLiteCpp/SQLiteCpp.h>

#include <chrono>
#include <fstream>
#include <thread>

#include "results/query.h"
#include "results/store.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

namespace petlab::results {

TEST_CASE("A writer that stands still for longer than SQLite waits is waited for", "[results]") {
  const testing::TempDir folder;
  const auto file = folder.path() / "petlab.db";
  const Store store(file);
  SQLite::Database writer(file.string(), SQLite::OPEN_READWRITE);
  writer.exec("BEGIN IMMEDIATE");
  // As in the middle of its change: the two copies of the index's header differ.
  std::fstream index(file.string() + "-shm", std::ios::in | std::ios::out | std::ios::binary);
  constexpr std::streamoff kCounter = 8;  // iChange of the first copy
  index.seekg(kCounter);
  const int before = index.get();
  const auto set_counter = [&](int value) {
    index.seekp(kCounter);
    index.put(static_cast<char>(value));
    index.flush();
  };
  set_counter(before ^ 0x55);
  const auto began = std::chrono::steady_clock::now();
  std::thread goes_on([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(11'500));
    set_counter(before);
    writer.exec("COMMIT");
  });
  std::string problem;
  try {
    CHECK(query(file, "SELECT count(*) FROM trials").rows.size() == 1);
  } catch (const std::exception& error) {
    problem = error.what();
  }
  const auto waited = std::chrono::steady_clock::now() - began;
  goes_on.join();
  CHECK(problem.empty());
  CHECK(waited > std::chrono::seconds(11));
}

TEST_CASE("A writer that stands still for longer than anybody waits is named", "[results]") {
  const testing::TempDir folder;
  const auto file = folder.path() / "petlab.db";
  const Store store(file);
  SQLite::Database writer(file.string(), SQLite::OPEN_READWRITE);
  writer.exec("BEGIN IMMEDIATE");
  std::fstream index(file.string() + "-shm", std::ios::in | std::ios::out | std::ios::binary);
  index.seekp(8);
  index.put('\x55');
  index.flush();
  CHECK_THROWS_WITH(Reader(file, std::chrono::milliseconds(1)),
                    file.string() +
                        ": cannot open it: another process has held the database for more than 0 "
                        "s; end it (fuser " +
                        file.string() + ") or wait");
}

}  // namespace petlab::results
