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
namespace {

// In a transaction, and in the middle of its change: the two copies of the index's header differ.
struct StoppedWriter {
  testing::TempDir folder;
  std::filesystem::path file = folder.path() / "petlab.db";
  Store store{file};
  SQLite::Database writer{file.string(), SQLite::OPEN_READWRITE};
  std::fstream index;
  int counter = 0;

  StoppedWriter() {
    writer.exec("BEGIN IMMEDIATE");
    index.open(file.string() + "-shm", std::ios::in | std::ios::out | std::ios::binary);
    index.seekg(kCounter);
    counter = index.get();
    set_counter(counter ^ 0x55);
  }
  void go_on() {
    set_counter(counter);
    writer.exec("COMMIT");
  }

 private:
  static constexpr std::streamoff kCounter = 8;  // iChange of the first copy
  void set_counter(int value) {
    index.seekp(kCounter);
    index.put(static_cast<char>(value));
    index.flush();
  }
};

}  // namespace

TEST_CASE("A writer that stands still for longer than SQLite waits is waited for", "[results]") {
  StoppedWriter stopped;
  const auto began = std::chrono::steady_clock::now();
  std::thread goes_on([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(11'500));
    stopped.go_on();
  });
  std::string problem;
  try {
    CHECK(query(stopped.file, "SELECT count(*) FROM trials").rows.size() == 1);
  } catch (const std::exception& error) {
    problem = error.what();
  }
  const auto waited = std::chrono::steady_clock::now() - began;
  goes_on.join();
  CHECK(problem.empty());
  CHECK(waited > std::chrono::seconds(11));
}

TEST_CASE("A writer that stands still for longer than anybody waits is named", "[results]") {
  const StoppedWriter stopped;
  const std::string file = stopped.file.string();
  CHECK_THROWS_WITH(Reader(stopped.file, std::chrono::milliseconds(1)),
                    file +
                        ": cannot open it: another process has held the database for more than 0 "
                        "s; end it (fuser " +
                        file + ") or wait");
}

}  // namespace petlab::results
