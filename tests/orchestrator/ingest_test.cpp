#include "orchestrator/records/ingest.h"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <initializer_list>
#include <random>

#include "base/files.h"
#include "orchestrator/records/rebuild.h"
#include "orchestrator/recovery/recovery.h"
#include "protocol/attempt_log.h"
#include "protocol/trial_directory.h"
#include "results/attempt_events.h"
#include "results/query.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

namespace petlab::orchestrator {
namespace {

using testing::TempDir;

/// A runs folder with one attempt, and a database that contains it.
struct IngestFixture {
  TempDir folder;
  std::filesystem::path runs = folder.path() / "runs";
  std::filesystem::path file = folder.path() / "petlab.db";
  protocol::TrialDirectory directory{runs, "t1", 1};
  results::Store store{file};
  Ingest ingest{store, runs};
  results::AttemptRef attempt = begin();
  std::int64_t seq = 0;
  std::string text;

  results::AttemptRef begin() {
    results::Batch batch = store.begin();
    batch.record_trial({"t1", R"({"seed":1})", "", {}, {}});
    results::NewAttempt request;
    request.trial_id = "t1";
    const auto claimed = std::get<results::AttemptRef>(batch.begin_attempt(request));
    batch.commit();
    std::filesystem::create_directories(directory.folder());
    return claimed;
  }
  template <typename Body>
  std::string line(Body body) {
    const std::int64_t number = seq++;
    return protocol::to_line({number, 1000.0 + static_cast<double>(number), std::move(body)}) +
           "\n";
  }
  /// Appends to the events file. The parameter is a list because its parts must be evaluated in
  /// order.
  void write(std::initializer_list<std::string> parts) {
    std::ofstream out(directory.events(), std::ios::app | std::ios::binary);
    for (const std::string& bytes : parts) out << bytes;
  }
  std::string start() {
    return line(protocol::Started{7, "w", "1", R"({"version":"1"})", "b", {}});
  }
  std::string metric(double value) {
    return line(protocol::Metric{seq, "train", "cola", "loss", value});
  }
  results::AttemptFacts facts() { return *store.read().attempt_facts("t1", 1); }
  std::int64_t count() {
    return std::get<std::int64_t>(
        results::query(file, "SELECT count(*) FROM metric_values").rows[0][0]);
  }
  /// Reads all events and returns the message with which the attempt failed; empty: it did not
  /// fail.
  std::string failure() {
    const IngestUpdate update = ingest.read_all(attempt);
    if (!update.over || update.over->index() == 0) return "";
    const auto& failed = std::get<protocol::Failed>(*update.over);
    CHECK(failed.kind == "protocol");
    CHECK(facts().outcome == results::Outcome::failed);
    CHECK(facts().kind == "protocol");
    CHECK(facts().reason == failed.reason);
    return failed.reason;
  }
};

}  // namespace

TEST_CASE("A torn line is read after it was rewritten with the same length", "[orchestrator]") {
  IngestFixture fixture;
  fixture.write({fixture.start()});
  const auto so_far = std::filesystem::file_size(fixture.directory.events());
  const std::string next = fixture.metric(0.5);
  fixture.write({std::string(next.size(), ' ')});
  CHECK(fixture.ingest.read_all(fixture.attempt).lines == 1);
  // After a full disk, a worker truncates its incomplete line and continues.
  std::filesystem::resize_file(fixture.directory.events(), so_far);
  fixture.write({next});
  CHECK(fixture.ingest.read_all(fixture.attempt).lines == 1);
  CHECK(fixture.count() == 1);
}

TEST_CASE("Events are stored once, as they are appended to the file", "[orchestrator]") {
  IngestFixture f;
  CHECK(f.ingest.read_all(f.attempt).lines == 0);  // no file yet
  f.write({f.start(), f.metric(0.5)});
  IngestUpdate update = f.ingest.read_all(f.attempt);
  CHECK(update.lines == 2);
  CHECK(update.metrics == 1);
  CHECK(update.started->worker == "w");
  CHECK(f.ingest.read_all(f.attempt).lines == 0);

  const std::string next = f.metric(0.1 + 0.2);
  f.write({next.substr(0, 20)});
  CHECK(f.ingest.read_all(f.attempt).lines == 0);  // no newline yet
  f.write({next.substr(20), f.line(protocol::Metric{9, "test", "cola", "f1", std::nullopt}),
           f.line(protocol::Progress{3, 9, 0.25, 700.0}), f.line(protocol::Progress{4, 9, {}}),
           f.line(protocol::Checkpoint{4, "checkpoint/step-4"})});
  update = f.ingest.read_all(f.attempt);
  CHECK(update.lines == 5);
  CHECK(update.progress->step == 4);
  CHECK(*update.checkpoint == results::CheckpointAt{4, 6, "checkpoint/step-4"});
  CHECK_FALSE(update.over);
  CHECK(results::open_progress(f.store.read()).at(0).of == 9);
  CHECK(f.store.read().open_attempts().at(0).checkpoint->seq == 6);
  CHECK(*f.facts().device_memory_mib == 700.0);

  f.write({f.line(protocol::Finished{9, "artifact.petl", 12.5, 13, 100.0, 2.0})});
  update = f.ingest.read_all(f.attempt);
  CHECK(std::holds_alternative<protocol::Finished>(*update.over));
  CHECK(f.facts().outcome == results::Outcome::finished);
  CHECK(f.facts().numerics == R"({"version":"1"})");
  CHECK(*f.facts().peak_memory_mib == 100.0);
  CHECK(*f.facts().device_memory_mib == 700.0);  // finished reported none
  CHECK(f.store.read().open_attempts().empty());
  const auto rows =
      results::query(f.file, "SELECT seq, step, split, name, value FROM results").rows;
  REQUIRE(rows.size() == 3);
  CHECK(std::get<double>(rows[1][4]) == 0.1 + 0.2);
  CHECK(std::holds_alternative<std::monostate>(rows[2][4]));
  CHECK(results::cursor_of(f.store.read(), f.attempt) ==
        results::Cursor{static_cast<std::int64_t>(std::filesystem::file_size(f.directory.events())),
                        8, 8, true, false});
}

TEST_CASE("Events of an uncommitted batch are read again", "[orchestrator]") {
  IngestFixture f;
  f.write({f.start(), f.metric(1), f.metric(2)});
  {
    results::Batch batch = f.store.begin();
    CHECK(f.ingest.read(batch, f.attempt).metrics == 2);
    CHECK(f.ingest.read(batch, f.attempt).metrics == 0);
  }
  CHECK(f.count() == 0);
  CHECK(f.ingest.read_all(f.attempt).metrics == 2);
  CHECK(f.count() == 2);
}

TEST_CASE("Two readers of one attempt store its events once, and both report new ones",
          "[orchestrator]") {
  IngestFixture f;
  results::Store other_store(f.file);
  Ingest other(other_store, f.runs);
  f.write({f.start(), f.metric(1)});
  CHECK(other.read_all(f.attempt).metrics == 1);
  CHECK(f.ingest.read_all(f.attempt).metrics == 0);  // it starts at the database's cursor
  f.write({f.metric(2)});
  CHECK(f.ingest.read_all(f.attempt).metrics == 1);
  f.write({f.metric(3), f.line(protocol::Finished{1, "", {}, {}, {}, {}})});
  IngestUpdate update = other.read_all(f.attempt);
  CHECK(update.metrics == 2);
  CHECK(update.over);
  // A run that missed the end would wait for it forever.
  update = f.ingest.read_all(f.attempt);
  CHECK(update.metrics == 1);
  CHECK(update.over);
  CHECK(f.count() == 3);
  CHECK(f.facts().outcome == results::Outcome::finished);
}

TEST_CASE("Events that another reader stores between look and store are not stored again",
          "[orchestrator]") {
  IngestFixture f;
  results::Store other_store(f.file);
  Ingest other(other_store, f.runs);
  f.write({f.start(), f.metric(1), f.line(protocol::Progress{1, 9, 0.5, {}})});
  const NewEvents few = other.look(f.attempt);
  f.write({f.metric(2), f.line(protocol::Checkpoint{2, "checkpoint/step-2"})});
  const NewEvents all = f.ingest.look(f.attempt);
  const auto store = [](results::Store& into, Ingest& ingest, const NewEvents& events) {
    results::Batch batch = into.begin();
    ingest.store(batch, events);
    batch.commit();
  };
  SECTION("fewer first") {
    store(other_store, other, few);
    store(f.store, f.ingest, all);
  }
  SECTION("all first") {
    store(f.store, f.ingest, all);
    store(other_store, other, few);
  }
  CHECK(f.count() == 2);
  CHECK(results::cursor_of(f.store.read(), f.attempt).next_seq == 5);
  CHECK(f.facts().checkpoint->seq == 4);
  CHECK(other.read_all(f.attempt).metrics == 1);
  CHECK(f.count() == 2);
}

TEST_CASE("A new attempt is followed from its first event, even if another reader was faster",
          "[orchestrator]") {
  IngestFixture f;
  {
    results::Batch batch = f.store.begin();
    f.ingest.expect(batch, f.attempt);
    batch.commit();
  }
  results::Store other_store(f.file);
  f.write({f.start(), f.metric(1)});
  Ingest(other_store, f.runs).read_all(f.attempt);
  const IngestUpdate update = f.ingest.read_all(f.attempt);
  CHECK(update.started);
  CHECK(update.metrics == 1);
  CHECK(f.count() == 1);
}

TEST_CASE("A protocol violation fails the attempt, with file, line, found and expected",
          "[orchestrator]") {
  IngestFixture f;
  SECTION("a gap in seq") {
    f.write({f.start(), f.metric(1)});
    ++f.seq;
    f.write({f.metric(2), f.metric(3)});
    CHECK(f.failure() == "t1/1/events.jsonl:3: seq is 3, must be 2");
    CHECK(f.count() == 1);
  }
  SECTION("a repeated seq") {
    const std::string start = f.start();
    const std::string once = f.metric(1);
    f.write({start, once, once});
    CHECK(f.failure() == "t1/1/events.jsonl:3: seq is 1, must be 2");
  }
  SECTION("no started at the beginning") {
    f.write({f.metric(1)});
    CHECK(f.failure() == "t1/1/events.jsonl:1: the first event is metric, must be started");
  }
  SECTION("started twice") {
    f.write({f.start()});
    f.write({f.start()});
    CHECK(f.failure() ==
          "t1/1/events.jsonl:2: started occurs a second time, must be the first event only");
  }
  SECTION("rubbish") {
    f.write({f.start(), "Traceback (most recent call last):\n"});
    CHECK(f.failure().find("t1/1/events.jsonl:2: ") == 0);
  }
  SECTION("an empty line") {
    f.write({f.start(), "\n"});
    CHECK(f.failure().find("t1/1/events.jsonl:2: ") == 0);
  }
  SECTION("bytes that are not text") {
    f.write({f.start(), std::string("\x00\xff\xfe\n", 4)});
    CHECK(f.failure().find("t1/1/events.jsonl:2: ") == 0);
  }
  SECTION("a line over 1 MiB, complete") {
    f.write({f.start(), std::string((1 << 20) + 1, 'x'), "\n"});
    CHECK(f.failure() == "t1/1/events.jsonl:2: the line is longer than 1 MiB");
  }
  SECTION("a line over 1 MiB that never ends") {
    f.write({f.start(), std::string(9 << 20, 'x')});
    CHECK(f.failure() == "t1/1/events.jsonl:2: the line is longer than 1 MiB");
  }
  SECTION("a file that became shorter") {
    f.write({f.start(), f.metric(1)});
    f.ingest.read_all(f.attempt);
    std::filesystem::resize_file(f.directory.events(), 10);
    const auto offset = std::to_string(results::cursor_of(f.store.read(), f.attempt).offset);
    CHECK(f.failure() ==
          "t1/1/events.jsonl:3: the file has 10 bytes, but " + offset + " were already read");
  }
  SECTION("a file that was rewritten") {
    f.write({f.start(), f.metric(1)});
    f.ingest.read_all(f.attempt);
    std::ofstream(f.directory.events(), std::ios::trunc) << std::string(5000, 'x');
    CHECK(f.failure() ==
          "t1/1/events.jsonl:3: the lines before it have changed since they were read");
  }
  // Later events do not count and cause no further message.
  f.write({f.metric(9)});
  const IngestUpdate after = f.ingest.read_all(f.attempt);
  CHECK(after.lines == 0);
  CHECK_FALSE(after.over);
  CHECK(after.note.empty());
  CHECK(results::cursor_of(f.store.read(), f.attempt).broken);
}

TEST_CASE("After a power cut the database matches the file, and the attempt is stopped",
          "[orchestrator]") {
  IngestFixture f;
  const std::string start = f.start();
  f.write({start, f.line(protocol::Progress{1, 9, 0.5, 700.0}), f.metric(1),
           f.line(protocol::Checkpoint{2, "checkpoint/step-2"})});
  const auto synced = std::filesystem::file_size(f.directory.events());
  protocol::log_begun(f.directory.attempt_log(), f.facts().begun);
  std::ofstream(f.directory.trial_json()) << R"({"v": 1, "config": {"seed": 1}})";
  const auto resize_events = [&](std::uintmax_t size) {
    std::filesystem::resize_file(f.directory.events(), size);
  };
  const auto conclude = [&] {
    return conclude_orphan(f.store, f.ingest, f.runs, f.facts(), "the machine went down", 2000);
  };
  f.write({f.line(protocol::Progress{3, 9, 0.25, 900.0}), f.metric(2)});
  SECTION("lost after the checkpoint, from the middle of a line") {
    f.ingest.read_all(f.attempt);
    resize_events(synced + 10);
    CHECK(conclude());
    CHECK(f.count() == 1);
    CHECK(f.facts().checkpoint->seq == 3);
    CHECK(*f.facts().device_memory_mib == 700.0);
  }
  SECTION("zeros in place of the last lines") {
    f.ingest.read_all(f.attempt);
    const auto size = std::filesystem::file_size(f.directory.events());
    resize_events(synced);
    resize_events(size + 4096);
    f.write({"\n"});
    CHECK(conclude());
    CHECK(f.count() == 1);
    CHECK(f.facts().checkpoint->seq == 3);
  }
  SECTION("lost lines that the database does not have yet") {
    resize_events(synced);
    CHECK(conclude());
    CHECK(f.count() == 1);
  }
  SECTION("an end that was read before it was synced") {
    f.write({f.line(protocol::Finished{9, "artifact.petl", 12.5, 13, 100.0, 2.0})});
    f.ingest.read_all(f.attempt);
    CHECK(f.facts().outcome == results::Outcome::finished);
    CHECK_FALSE(conclude());  // nothing is lost
    CHECK(f.facts().outcome == results::Outcome::finished);
    resize_events(synced);
    CHECK(conclude());
    CHECK(f.count() == 1);
    CHECK_FALSE(f.store.read().trial_facts(std::vector<std::string>{"t1"})[0].result_attempt);
  }
  SECTION("the whole file, and the files of petlab") {
    f.ingest.read_all(f.attempt);
    std::filesystem::remove(f.directory.events());
    std::ofstream(f.directory.attempt_log(), std::ios::trunc) << std::string(30, '\0');
    std::ofstream(f.directory.trial_json(), std::ios::trunc);
    CHECK(conclude());
    CHECK(f.count() == 0);
    CHECK(f.facts().outcome == results::Outcome::never_started);
    CHECK_FALSE(f.facts().checkpoint);
    CHECK(base::read_file(f.directory.trial_json(), 1 << 20).find(R"("seed": 1)") !=
          std::string::npos);
    const protocol::AttemptLog log = protocol::read_attempt_log(f.directory);
    CHECK(log.begun == f.facts().begun);
    CHECK(log.ending->reason == "the machine went down");
    return;
  }
  CHECK(f.facts().outcome == results::Outcome::stopped);
  CHECK(f.facts().reason == "the machine went down");
  CHECK(protocol::read_attempt_log(f.directory).ending->outcome == results::Outcome::stopped);
}

TEST_CASE("An import does not touch an attempt that lost events in a power cut", "[orchestrator]") {
  IngestFixture f;
  f.write({f.start(), f.metric(1)});
  f.ingest.read_all(f.attempt);
  std::filesystem::resize_file(f.directory.events(), 10);
  protocol::log_begun(f.directory.attempt_log(), f.facts().begun);
  const RunsSummary summary = ingest_runs(f.store, f.runs);
  REQUIRE(summary.left_out.size() == 1);
  CHECK(summary.left_out[0].find("t1/1/events.jsonl: the file has 10 bytes, ") == 0);
  CHECK(f.facts().outcome == results::Outcome::open);
  CHECK(f.count() == 1);
}

TEST_CASE("Lines after the last event are ignored and noted", "[orchestrator]") {
  IngestFixture f;
  f.write({f.start(), f.line(protocol::Finished{1, "", {}, {}, {}, {}}), "half a line"});
  CHECK(f.ingest.read_all(f.attempt).note.empty());
  f.write({" that is one now\n"});
  const std::string note =
      "t1/1/events.jsonl:3: ignored a line after the last event (finished, failed or stopped)";
  CHECK(f.ingest.read_all(f.attempt).note == note);
  CHECK(f.facts().note == note);
  CHECK(f.facts().outcome == results::Outcome::finished);
}

TEST_CASE("A late finished event replaces the recorded ending, and never the reverse",
          "[orchestrator]") {
  IngestFixture f;
  f.write({f.start()});
  f.ingest.read_all(f.attempt);
  const auto end = [&](results::Outcome outcome) {
    results::Batch batch = f.store.begin();
    batch.record_ending(f.attempt, {outcome, "seen by an orchestrator", 1, {}, "tail", 2000});
    batch.commit();
  };
  end(results::Outcome::lost);
  CHECK(f.facts().outcome == results::Outcome::lost);
  end(results::Outcome::crashed);
  CHECK(f.facts().outcome == results::Outcome::lost);  // the first counts
  f.write({f.metric(1), f.line(protocol::Finished{1, "", {}, {}, {}, {}})});
  f.ingest.read_all(f.attempt);
  CHECK(f.facts().outcome == results::Outcome::finished);
  end(results::Outcome::crashed);
  CHECK(f.facts().outcome == results::Outcome::finished);
  CHECK(f.facts().log_tail == "tail");
}

TEST_CASE("A file of many megabytes is read in several calls", "[orchestrator]") {
  IngestFixture f;
  std::string text = f.start();
  constexpr int kRows = 100'000;
  for (int i = 0; i < kRows; ++i) text += f.metric(i);
  f.write({text, f.line(protocol::Failed{"no reason", "not_finite"})});
  int calls = 0;
  std::int64_t metrics = 0;
  bool more = true;
  while (more) {
    results::Batch batch = f.store.begin();
    const IngestUpdate update = f.ingest.read(batch, f.attempt, 1'000'000);
    batch.commit();
    more = update.more;
    metrics += update.metrics;
    ++calls;
  }
  CHECK(calls > 1);
  CHECK(metrics == kRows);
  CHECK(f.count() == kRows);
  CHECK(f.facts().kind == "not_finite");
  CHECK(f.facts().reason == "no reason");
}

TEST_CASE("An ingest that is killed at any moment loses nothing and stores nothing twice",
          "[orchestrator]") {
  IngestFixture f;
  std::string text = f.start();
  constexpr int kRows = 10'000;
  for (int i = 0; i < kRows; ++i) text += f.metric(i);
  f.write({text, f.line(protocol::Finished{1, "", {}, {}, {}, {}})});
  std::mt19937 random(20240607);
  int killed = 0;
  int rounds = 0;
  while (f.facts().outcome == results::Outcome::open && rounds < 1000) {
    ++rounds;
    int ready[2];
    REQUIRE(pipe(ready) == 0);
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      // A separate process with small transactions, so that kills fall between and inside them.
      try {
        results::Store store(f.file);
        Ingest ingest(store, f.runs);
        close(ready[1]);
        bool more = true;
        while (more) {
          results::Batch batch = store.begin();
          more = ingest.read(batch, f.attempt, 1'000).more;
          batch.commit();
        }
      } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        _exit(1);
      }
      _exit(0);
    }
    close(ready[1]);
    char nothing = 0;
    REQUIRE(read(ready[0], &nothing, 1) == 0);  // the child has begun
    close(ready[0]);
    // The waits grow, so that the ingest also finishes on a slow machine.
    usleep(static_cast<useconds_t>(random() % (5'000 + 500 * static_cast<unsigned>(rounds))));
    kill(child, SIGKILL);
    int status = 0;
    waitpid(child, &status, 0);
    if (WIFSIGNALED(status)) {
      ++killed;
    } else {
      REQUIRE(WEXITSTATUS(status) == 0);
    }
  }
  CHECK(killed > 10);
  CHECK(f.facts().outcome == results::Outcome::finished);
  const auto rows = results::query(
      f.file, "SELECT count(*), count(DISTINCT seq), min(seq), max(seq), sum(value) FROM results");
  CHECK(std::get<std::int64_t>(rows.rows[0][0]) == kRows);
  CHECK(std::get<std::int64_t>(rows.rows[0][1]) == kRows);
  CHECK(std::get<std::int64_t>(rows.rows[0][2]) == 1);
  CHECK(std::get<std::int64_t>(rows.rows[0][3]) == kRows);
  CHECK(std::get<double>(rows.rows[0][4]) == kRows * (kRows - 1.0) / 2);
}

}  // namespace petlab::orchestrator
