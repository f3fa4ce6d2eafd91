// A process that is suspended in the middle of a change to the shared index (by a signal, or
// without a processor) keeps others waiting, but that is not an error.
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

// A writer in a transaction, in the middle of a change: the two copies of the index's header
// differ.
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
  void resume() {
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

TEST_CASE("A writer that is suspended for longer than SQLite waits is waited for", "[results]") {
  StoppedWriter stopped;
  const auto began = std::chrono::steady_clock::now();
  std::thread resuming([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(11'500));
    stopped.resume();
  });
  std::string problem;
  try {
    CHECK(query(stopped.file, "SELECT count(*) FROM trials").rows.size() == 1);
  } catch (const std::exception& error) {
    problem = error.what();
  }
  const auto waited = std::chrono::steady_clock::now() - began;
  resuming.join();
  CHECK(problem.empty());
  CHECK(waited > std::chrono::seconds(11));
}

TEST_CASE("A writer that is suspended for longer than the time limit is reported", "[results]") {
  const StoppedWriter stopped;
  const std::string file = stopped.file.string();
  CHECK_THROWS_WITH(Reader(stopped.file, std::chrono::milliseconds(1)),
                    file +
                        ": cannot open it: another process has held the database for more than 0 "
                        "s; end it (fuser " +
                        file + ") or wait");
}

}  // namespace petlab::results
