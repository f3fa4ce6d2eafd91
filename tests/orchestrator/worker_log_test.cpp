#include "orchestrator/launching/worker_log.h"

#include <fmt/format.h>

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "protocol/trial_directory.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

namespace petlab::orchestrator {
namespace {

// Attempts of three trials that are assigned to one worker.
struct Attempts {
  testing::TempDir folder;
  std::vector<protocol::TrialDirectory> given;

  Attempts() {
    for (const char* trial : {"a", "b", "c"}) {
      given.emplace_back(folder.path(), trial, 1);
      std::filesystem::create_directories(given.back().folder());
    }
  }
  WorkerLog log_expecting_all(std::int64_t max_bytes = 1 << 20) const {
    WorkerLog log(max_bytes);
    for (const auto& attempt : given) log.expect(attempt.folder());
    return log;
  }
  std::string announced(std::size_t at) const {
    return protocol::announcement(given[at].folder().string());
  }
  std::string logged(std::size_t at) const {
    std::ostringstream text;
    text << std::ifstream(given[at].log()).rdbuf();
    return text.str();
  }
  void remove_logs() const {
    for (const auto& attempt : given) std::filesystem::remove(attempt.log());
  }
};

}  // namespace

TEST_CASE("Output is split where the worker announces an attempt, however late petlab sees it",
          "[orchestrator]") {
  const Attempts f;
  const std::string output =
      f.announced(0) + "one\n" + f.announced(1) + "Traceback\n  two" + f.announced(2) + "three\n";
  // The pipe may split the output anywhere.
  for (std::size_t cut = 0; cut <= output.size(); ++cut) {
    f.remove_logs();
    WorkerLog log = f.log_expecting_all();
    log.log_to(f.given[0].log());
    log.append(std::string_view(output).substr(0, cut));
    log.append(std::string_view(output).substr(cut));
    CAPTURE(cut);
    CHECK(f.logged(0) == "one\n");
    CHECK(f.logged(1) == "Traceback\n  two");
    CHECK(f.logged(2) == "three\n");
    // Only now does petlab see the ends of the first two.
    CHECK(log.last_lines(f.given[0].log()) == "one");
    log.log_to(f.given[1].log());
    CHECK(log.last_lines(f.given[0].log()).empty());
    CHECK(log.last_lines(f.given[1].log()) == "Traceback\n  two");
    CHECK(log.last_lines() == "three");
    CHECK(log.lines_by_log() ==
          std::map<std::filesystem::path, std::string>{{f.given[1].log(), "Traceback\n  two"},
                                                       {f.given[2].log(), "three"}});
  }
}

TEST_CASE("If a worker announces attempts, its output between two trials belongs to the first",
          "[orchestrator]") {
  const Attempts f;
  WorkerLog log = f.log_expecting_all();
  log.log_to(f.given[0].log());
  log.append("loading\n" + f.announced(0) + "one\n");
  log.log_to(f.given[1].log());  // its events show that the first is over
  log.append("after the trial's end\n");
  CHECK(log.last_lines(f.given[1].log()).empty());
  log.append(f.announced(1) + "two\n");
  CHECK(f.logged(0) == "loading\none\nafter the trial's end\n");
  CHECK(f.logged(1) == "two\n");
  CHECK(log.last_lines(f.given[1].log()) == "two");
}

TEST_CASE("Without announcements output is split when petlab switches logs", "[orchestrator]") {
  const Attempts f;
  WorkerLog log = f.log_expecting_all();
  log.log_to(f.given[0].log());
  log.append("one\n");
  CHECK(log.last_lines(f.given[0].log()) == "one");
  log.log_to(f.given[1].log());
  log.append("two\n");
  CHECK(f.logged(0) == "one\n");
  CHECK(f.logged(1) == "two\n");
  CHECK(log.last_lines(f.given[0].log()).empty());
  CHECK(log.lines_by_log() ==
        std::map<std::filesystem::path, std::string>{{f.given[1].log(), "two"}});
}

TEST_CASE("A worker may announce only its next attempt; anything else is log output",
          "[orchestrator]") {
  const Attempts f;
  WorkerLog log = f.log_expecting_all();
  log.log_to(f.given[0].log());
  const std::string other = f.announced(2) + protocol::announcement("/etc/x") + "\x1e\x1e";
  log.append(f.announced(0) + other + "one\n");
  log.append(f.announced(1) + f.announced(0) + "two\n");
  CHECK(f.logged(0) == other + "one\n");
  CHECK(f.logged(1) == f.announced(0) + "two\n");
  // Half an announcement at the end is output, too.
  const std::string half = f.announced(2).substr(0, 5);
  log.append(half);
  CHECK(f.logged(1) == f.announced(0) + "two\n");
  log.end();
  CHECK(f.logged(1) == f.announced(0) + "two\n" + half);
  CHECK(f.logged(2).empty());
}

TEST_CASE("Each attempt's log has its own size limit", "[orchestrator]") {
  const Attempts f;
  WorkerLog log = f.log_expecting_all(4);
  log.log_to(f.given[0].log());
  log.append(f.announced(0) + "123456" + f.announced(1) + "1234" + f.announced(2) + "12345");
  const std::string full = "\npetlab: the log is full (4 bytes); later output is dropped\n";
  CHECK(f.logged(0) == "1234" + full);
  CHECK(f.logged(1) == "1234");
  CHECK(f.logged(2) == "1234" + full);
  CHECK(log.last_lines() == "12345");
}

}  // namespace petlab::orchestrator
