#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <random>

#include "results/attempt_events.h"
#include "results/database_held.h"
#include "results/error.h"
#include "tests/results/helpers.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

namespace petlab::results {
namespace {

using testing::TempDir;
using Lines = std::vector<std::string>;

/// Runs `body` in a child process, whose exit code is 0 unless `body` throws.
template <typename Body>
pid_t in_process(Body body) {
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child != 0) return child;
  try {
    body();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "child: %s\n", error.what());
    _exit(1);
  }
  _exit(0);
}

int exit_of(pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

std::string id(int number) { return "t" + std::to_string(100 + number); }

constexpr int kTrials = 60;

/// Acts as an orchestrator: creates the database if necessary, records the sweep and trains free
/// trials.
void orchestrate(const std::filesystem::path& file, int number) {
  Store store(file);
  std::vector<TrialRow> trials;
  SweepRow sweep{"s" + std::to_string(number), "", "", "", {}};
  for (int i = 0; i < kTrials; ++i) {
    trials.push_back(trial_row(id(i), static_cast<std::uint64_t>(i)));
    sweep.members.push_back({id(i), ""});
  }
  {
    Batch batch = store.begin();
    batch.record_sweep(sweep, trials, 1);
    batch.commit();
  }
  for (int i = 0; i < kTrials; ++i) {
    Batch batch = store.begin();
    const Claim claim = batch.begin_attempt(request(id(i)));
    batch.commit();
    const auto* attempt = std::get_if<AttemptRef>(&claim);
    if (attempt == nullptr) continue;
    Batch results = store.begin();
    append_losses(results, *attempt, 50, number * 1000.0);
    record_finished(results, *attempt, {}, 9);
    results.commit();
  }
}

}  // namespace

TEST_CASE("Eight processes write one database while readers poll it, without a lock error",
          "[results]") {
  const TempDir folder;
  const auto file = folder.path() / "petlab.db";
  const pid_t reader = in_process([&] {
    // Runs until the parent writes the file `stop`.
    while (!std::filesystem::exists(folder.path() / "stop")) {
      if (!std::filesystem::exists(file)) continue;
      query(file, "SELECT count(*), sum(value) FROM results");
      const Reader facts(file);
      facts.open_attempts();
    }
  });
  std::vector<pid_t> writers;
  for (int i = 0; i < 8; ++i) writers.push_back(in_process([&] { orchestrate(file, i); }));
  for (const pid_t writer : writers) CHECK(exit_of(writer) == 0);
  folder.write("stop", "");
  CHECK(exit_of(reader) == 0);
  CHECK(rows(file, "SELECT count(*), count(DISTINCT trial_id), max(attempt) FROM results") ==
        Lines{std::to_string(kTrials * 50) + "|" + std::to_string(kTrials) + "|1"});
  CHECK(rows(file, "SELECT count(DISTINCT sweep) FROM sweep_results") == Lines{"8"});
  // Processes that created a database too late have removed it.
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    CHECK(entry.path().filename().string().find(".new-") == std::string::npos);
  }
}

TEST_CASE("On a network file system one process at a time writes, and others can read",
          "[results]") {
  const TempDir folder;
  const auto file = folder.path() / "petlab.db";
  OpenOptions shared;
  shared.journal = OpenOptions::Journal::rollback;
  {
    Store store(file, shared);
    Batch batch = store.begin();
    batch.record_trial(trial_row("t1"));
    batch.commit();
    CHECK(testing::read_file(file).at(18) == 1);  // the version of the file format: not WAL
    CHECK(rows(file, "SELECT count(*) FROM trials") == Lines{"1"});
    char host[256] = {};
    gethostname(host, sizeof host - 1);
    CHECK_THROWS_WITH(
        Store(file, shared),
        testing::has_text(file.string() + ": " + host + " process " + std::to_string(getpid()) +
                          " writes it, last at 20") &&
            Catch::Matchers::EndsWith("; on a network file system only one may: wait for it"));
  }
  const pid_t killed = in_process([&] {
    const Store store(file, shared);
    kill(getpid(), SIGKILL);
  });
  CHECK(exit_of(killed) == 128 + SIGKILL);
  { const Store store(file, shared); }
  folder.write("petlab.db.lock", "elsewhere process 7\n");
  release_database_of("else", file);
  CHECK_THROWS_WITH(Store(file, shared),
                    testing::has_text(": elsewhere process 7 writes it, last at ") &&
                        Catch::Matchers::EndsWith(
                            ", or, if elsewhere is dead, run petlab retry --dead-host elsewhere"));
  release_database_of("elsewhere", file);
  { const Store store(file, shared); }
  CHECK(testing::read_file(folder.path() / "petlab.db.lock").empty());
  // As if the database was copied to a local disk.
  { const Store store(file); }
  CHECK(testing::read_file(file).at(18) == 2);
}

TEST_CASE(
    "A run takes a database from a host whose lease has ended, until it has settled its attempts",
    "[results]") {
  const TempDir folder;
  const auto file = folder.path() / "petlab.db";
  const auto lock = folder.path() / "petlab.db.lock";
  OpenOptions shared;
  shared.journal = OpenOptions::Journal::rollback;
  { const Store store(file, shared); }
  OpenOptions run = shared;
  run.takes_ended_leases = true;
  run.lease = std::chrono::seconds(600);
  const auto written_ago = [&](int seconds) {
    std::filesystem::last_write_time(
        lock, std::filesystem::file_time_type::clock::now() - std::chrono::seconds(seconds));
  };
  folder.write("petlab.db.lock", "far process 7 lease 100\n");
  written_ago(120);
  const auto held = Catch::Matchers::EndsWith(
      "wait for it, or until it has not renewed its lease of 100 s for long enough");
  CHECK_THROWS_WITH(Store(file, run), held);
  written_ago(130);
  CHECK_THROWS_WITH(Store(file, shared), held);
  const std::vector<std::string> far = {"far"};
  {
    Store store(file, run);
    CHECK(store.vanished_hosts() == far);
    CHECK(testing::read_file(lock).find(" lease 600\nafter far\n") != std::string::npos);
  }
  CHECK(testing::read_file(lock) == "\nafter far\n");
  // A second host vanishes before the first is settled.
  folder.write("petlab.db.lock", "off process 8 lease 100\nafter far\n");
  written_ago(130);
  {
    Store store(file, run);
    CHECK(store.vanished_hosts() == std::vector<std::string>{"far", "off"});
    store.forget_vanished_hosts();
    CHECK(store.vanished_hosts().empty());
    // Another process takes it in turn: nothing is left of this one's.
    folder.write("petlab.db.lock", "far process 9 lease 100\n");
  }
  CHECK(testing::read_file(lock) == "far process 9 lease 100\n");
}

TEST_CASE("Writers killed at any moment leave an intact database", "[results]") {
  const TempDir folder;
  const auto file = folder.path() / "petlab.db";
  { const Store store(file); }
  std::mt19937 random(7);
  int killed = 0;
  for (int round = 0; round < 25; ++round) {
    const pid_t writer = in_process([&] {
      Store store(file);
      for (int number = 0;; ++number) {
        Batch batch = store.begin();
        const std::string trial = id(static_cast<int>(getpid())) + "-" + std::to_string(number);
        batch.record_trial(trial_row(trial));
        const auto attempt = std::get<AttemptRef>(batch.begin_attempt(request(trial)));
        append_losses(batch, attempt, 300);
        record_finished(batch, attempt, {}, 9);
        batch.commit();
      }
    });
    // The last writer must have written something, even on a slow machine.
    for (int tries = 0; round == 24 && tries < 6'000; ++tries) {
      if (rows(file, "SELECT count(*) > 0 FROM trials") == Lines{"1"}) break;
      usleep(10'000);
    }
    usleep(static_cast<useconds_t>(5'000 + random() % 25'000));
    kill(writer, SIGKILL);
    killed += exit_of(writer) == 128 + SIGKILL;
    REQUIRE(rows(file,
                 "SELECT count(*) FROM (SELECT count(*) AS n FROM results GROUP BY trial_id) "
                 "WHERE n <> 300") == Lines{"0"});
  }
  CHECK(killed == 25);
  CHECK(rows(file, "PRAGMA integrity_check") == Lines{"ok"});
  CHECK(rows(file,
             "SELECT (SELECT count(*) FROM trials) = (SELECT count(DISTINCT trial_id) FROM "
             "results), count(*) > 0 FROM trials") == Lines{"1|1"});
}

}  // namespace petlab::results
