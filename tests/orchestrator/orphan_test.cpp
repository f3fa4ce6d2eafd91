// How the attempts of a dead orchestrator are concluded, depending on when it died.
#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>

#include "orchestrator/records/ingest.h"
#include "orchestrator/recovery/recovery.h"
#include "protocol/attempt_log.h"
#include "protocol/trial_directory.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

namespace petlab::orchestrator {
namespace {

using results::Outcome;

/// An attempt whose orchestrator died.
struct Orphan {
  testing::TempDir folder;
  std::filesystem::path runs = folder.path() / "runs";
  protocol::TrialDirectory directory{runs, "t1", 1};
  results::Store store{folder.path() / "petlab.db"};
  results::AttemptRef attempt = begin();
  std::int64_t seq = 0;

  results::AttemptRef begin() {
    results::Batch batch = store.begin();
    batch.record_trial({"t1", R"({"seed":1})", "", {}, {}});
    results::NewAttempt request;
    request.trial_id = "t1";
    const auto claimed = std::get<results::AttemptRef>(batch.begin_attempt(request));
    batch.commit();
    return claimed;
  }
  template <typename Body>
  void write(Body body) {
    std::filesystem::create_directories(directory.folder());
    std::ofstream(directory.events(), std::ios::app)
        << protocol::to_line({seq++, 1000, std::move(body)}) << '\n';
  }
  void started() { write(protocol::Started{7, "w", "1", R"({"version":"1"})", "b", {}}); }
  /// Ingests the events so far, like an orchestrator that dies later.
  void ingest() { Ingest(store, runs).read_all(attempt); }
  results::AttemptFacts facts() const { return *store.read().attempt_facts("t1", 1); }
  Outcome conclude() {
    Ingest ingest(store, runs);
    conclude_orphan(store, ingest, runs, facts(), "its orchestrator died", 99);
    return facts().outcome;
  }
};

}  // namespace

TEST_CASE("An orphan counts as started if its worker reported that, ingested or not",
          "[orchestrator]") {
  SECTION("neither reported nor ingested") {
    Orphan orphan;
    std::filesystem::create_directories(orphan.directory.folder());
    CHECK(orphan.conclude() == Outcome::never_started);
  }
  SECTION("reported, not ingested") {
    Orphan orphan;
    orphan.started();
    CHECK(orphan.conclude() == Outcome::stopped);
    CHECK(orphan.facts().started_at == 1000);
  }
  SECTION("reported and ingested, nothing since") {
    Orphan orphan;
    orphan.started();
    orphan.ingest();
    CHECK(orphan.conclude() == Outcome::stopped);
  }
  SECTION("reported and ingested, more since") {
    Orphan orphan;
    orphan.started();
    orphan.ingest();
    orphan.write(protocol::Progress{1, 4, 0.5});
    CHECK(orphan.conclude() == Outcome::stopped);
  }
  SECTION("reported in an incomplete line") {
    Orphan orphan;
    std::filesystem::create_directories(orphan.directory.folder());
    std::ofstream(orphan.directory.events()) << R"({"v":1,"seq":0,"time":1000,"type":"star)";
    CHECK(orphan.conclude() == Outcome::never_started);
  }
}

TEST_CASE("An ending that the worker reported is not overwritten", "[orchestrator]") {
  for (const bool read : {false, true}) {
    Orphan orphan;
    orphan.started();
    if (read) orphan.ingest();
    orphan.write(protocol::Finished{4, "", {}, {}, {}, {}});
    CHECK(orphan.conclude() == Outcome::finished);
    CHECK_FALSE(protocol::read_attempt_log(orphan.directory).ending);
  }
  Orphan failed;
  failed.started();
  failed.write(protocol::Failed{"no memory", "out_of_memory"});
  CHECK(failed.conclude() == Outcome::failed);
  CHECK(failed.facts().kind == "out_of_memory");
  CHECK_FALSE(protocol::read_attempt_log(failed.directory).ending);
}

TEST_CASE("An orphan's end is logged in its folder and recorded", "[orchestrator]") {
  Orphan orphan;
  orphan.started();
  orphan.conclude();
  const auto log = protocol::read_attempt_log(orphan.directory);
  REQUIRE(log.ending);
  CHECK(log.ending->outcome == Outcome::stopped);
  CHECK(log.ending->reason == "its orchestrator died");
  CHECK(log.ending->time == 99);
  CHECK(orphan.facts().reason == "its orchestrator died");
  CHECK(orphan.facts().ended_at == 99);
}

TEST_CASE("A claim without a folder is forgotten together with its unfinished folder",
          "[orchestrator]") {
  Orphan orphan;
  std::filesystem::create_directories(orphan.runs / "t1" / ".1.new-4711");
  std::filesystem::create_directories(orphan.runs / "t1" / ".2.new-4711");
  Ingest ingest(orphan.store, orphan.runs);
  conclude_orphan(orphan.store, ingest, orphan.runs, orphan.facts(), "it died", 99);
  CHECK_FALSE(orphan.store.read().attempt_facts("t1", 1));
  CHECK_FALSE(std::filesystem::exists(orphan.runs / "t1" / ".1.new-4711"));
  CHECK(std::filesystem::exists(orphan.runs / "t1" / ".2.new-4711"));
}

TEST_CASE("The locks of workers are removed although their run removed its own", "[orchestrator]") {
  Orphan orphan;
  const std::filesystem::path locks = locks_folder(orphan.runs);
  std::filesystem::create_directories(locks);
  for (const char* name : {"123-456-89abcdef.cpu-0.lock", "123-456-89abcdef.cpu-0.lock.asked"}) {
    std::ofstream(locks / name) << "";
  }
  Ingest ingest(orphan.store, orphan.runs);
  Recovery(orphan.store, ingest, orphan.runs, std::chrono::seconds(1)).step({}, 99);
  CHECK(std::filesystem::is_empty(locks));
}

}  // namespace petlab::orchestrator
