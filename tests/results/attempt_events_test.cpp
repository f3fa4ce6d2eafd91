#include "results/attempt_events.h"

#include <optional>
#include <string>

#include "tests/results/helpers.h"
#include "tests/support/broken_invariant.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

namespace petlab::results {
namespace {

/// One open attempt. Each call is a separate transaction.
struct OneAttempt {
  testing::TempDir folder;
  Store store{folder.path() / "petlab.db"};
  AttemptRef attempt = begin();

  AttemptRef begin() {
    Batch batch = store.begin();
    batch.record_trial(trial_row("t1"));
    const auto claimed = std::get<AttemptRef>(batch.begin_attempt(request("t1")));
    batch.commit();
    return claimed;
  }
  void progress(std::optional<double> device_memory_mib) {
    Batch batch = store.begin();
    protocol::Progress event{1, 9, 0.5};
    event.device_memory_mib = device_memory_mib;
    record_progress(batch, attempt, event, 1);
    batch.commit();
  }
  void finish(std::optional<double> device_memory_mib) {
    Batch batch = store.begin();
    protocol::Finished event;
    event.device_memory_mib = device_memory_mib;
    event.peak_memory_mib = 5;
    record_finished(batch, attempt, event, 2);
    batch.commit();
  }
  std::optional<double> peak() const {
    return store.read().attempt_facts("t1", 1)->device_memory_mib;
  }
};

}  // namespace

TEST_CASE("The peak of device memory only grows", "[results]") {
  OneAttempt f;
  CHECK_FALSE(f.peak());
  f.progress(std::nullopt);
  CHECK_FALSE(f.peak());
  f.progress(500);
  f.progress(800);
  CHECK(f.peak() == 800);
  f.progress(700);
  f.progress(std::nullopt);
  CHECK(f.peak() == 800);
  SECTION("finished reports less") {
    f.finish(600);
    CHECK(f.peak() == 800);
  }
  SECTION("finished reports more") {
    f.finish(900);
    CHECK(f.peak() == 900);
  }
  SECTION("finished reports nothing") {
    f.finish(std::nullopt);
    CHECK(f.peak() == 800);
  }
}

TEST_CASE("The peak of device memory may be reported only at the end", "[results]") {
  OneAttempt f;
  f.progress(std::nullopt);
  SECTION("with a number") {
    f.finish(600);
    CHECK(f.peak() == 600);
  }
  SECTION("without one") {
    f.finish(std::nullopt);
    CHECK_FALSE(f.peak());
  }
}

TEST_CASE("An attempt ends once, by what its worker reports", "[invariants]") {
  OneAttempt f;
  f.finish(std::nullopt);
  const std::string twice = "attempt 1 of t1 ends a second time";
  CHECK(testing::broken_invariant([&] { f.finish(std::nullopt); }) == twice);
  CHECK(testing::broken_invariant([&] {
          Batch batch = f.store.begin();
          record_failed(batch, f.attempt, {"no good", "error"}, 3);
        }) == twice);
}

TEST_CASE("Events are read forwards, and none after the end", "[invariants]") {
  OneAttempt f;
  const auto set = [&](const Cursor& cursor) {
    Batch batch = f.store.begin();
    set_cursor(batch, f.attempt, cursor);
    batch.commit();
  };
  set({.offset = 100, .next_seq = 2, .lines = 2});
  const std::string backwards = "attempt 1 of t1 is read backwards, or after its end";
  CHECK(testing::broken_invariant([&] { set({.offset = 99, .next_seq = 2}); }) == backwards);
  CHECK(testing::broken_invariant([&] { set({.offset = 100, .next_seq = 1}); }) == backwards);
  set({.offset = 200, .next_seq = 3, .lines = 3, .closed = true});
  CHECK(testing::broken_invariant([&] { set({.offset = 300, .next_seq = 4}); }) == backwards);
}

}  // namespace petlab::results
