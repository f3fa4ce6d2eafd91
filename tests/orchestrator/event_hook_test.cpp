#include "orchestrator/running/event_hook.h"

#include <boost/asio/post.hpp>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "protocol/trial_directory.h"
#include "tests/orchestrator/scripted_run.h"
#include "tests/support/catch.h"

using namespace petlab;
using testing::ScriptedAttempt;
using testing::ScriptedRun;
using Does = testing::ScriptedAttempt::Does;
using Json = nlohmann::json;

namespace {

std::string content(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return std::move(text).str();
}

// A scripted run, and a hook that polls its database on the real clock.
class HookedRun {
 public:
  explicit HookedRun(int trials) : run(trials), got(run.files.folder.path() / "got") {
    options.database = run.files.database();
    options.runs = run.options.runs;
    options.command.retry_delay = std::chrono::milliseconds(1);
    options.command.limit = std::chrono::seconds(60);
    append();
  }
  void append() { options.command.text = "cat >> " + got.string(); }

  // Reads all trials, as the hook of the next run does.
  std::unique_ptr<orchestrator::EventHook> look() {
    auto hook = std::make_unique<orchestrator::EventHook>(io, *run.store, run.sweep, options, run);
    for (const sweeps::SweepTrial& trial : run.sweep.trials) hook->settled(trial.id.value);
    return hook;
  }
  void deliver() {
    orchestrator::EventLoop loop(io);
    look()->finish(loop);
  }
  // The events since the last call.
  std::vector<Json> events() {
    std::vector<Json> all;
    std::istringstream lines(content(got));
    for (std::string line; std::getline(lines, line);) all.push_back(Json::parse(line));
    std::filesystem::remove(got);
    return all;
  }
  std::filesystem::path marks() const {
    return protocol::delivered_events_file(options.runs, run.sweep.name);
  }

  ScriptedRun run;
  boost::asio::io_context io;
  orchestrator::EventHookOptions options;
  std::filesystem::path got;
};

std::vector<std::string> words(const std::vector<Json>& events) {
  std::vector<std::string> all;
  for (const Json& event : events) {
    std::string word = event.at("event").get<std::string>();
    if (event.contains("attempt")) word += fmt::format(" {}", event.at("attempt").dump());
    all.push_back(word);
  }
  return all;
}

using Words = std::vector<std::string>;

}  // namespace

TEST_CASE("Events follow from the database and are delivered once", "[orchestrator]") {
  HookedRun hooked(3);
  hooked.deliver();
  CHECK(hooked.events().empty());
  hooked.run.options.no_progress_limit = std::chrono::seconds(15);
  hooked.run.script(1, {{Does::hang}, {}});
  hooked.run.script(2, {{Does::fail}});
  hooked.run.execute();
  hooked.deliver();
  const std::vector<Json> events = hooked.events();
  REQUIRE(words(events) == Words{"trial_finished 1", "trial_stalled 1", "trial_finished 2",
                                 "trial_failed 1", "sweep_done"});
  const results::AttemptFacts failed = hooked.run.facts(2).attempts.at(0);
  Json expected = {{"v", 1},
                   {"id", events[3].at("id")},
                   {"event", "trial_failed"},
                   {"time", *failed.ended_at},
                   {"sweep", hooked.run.sweep.name},
                   {"variant", "v3"},
                   {"trial", hooked.run.sweep.trials[2].id.value},
                   {"attempt", 1},
                   {"outcome", "failed"},
                   {"reason", "the script says so"},
                   {"last_lines", "the script's last line"},
                   {"host", failed.begun.host},
                   {"database", hooked.options.database.string()},
                   {"runs", hooked.options.runs.string()}};
  if (!failed.begun.device.empty()) expected["device"] = failed.begun.device;
  CHECK(events[3] == expected);
  expected = {{"v", 1},
              {"id", events[4].at("id")},
              {"event", "sweep_done"},
              {"time", events[4].at("time")},
              {"sweep", hooked.run.sweep.name},
              {"total", 3},
              {"done", 2},
              {"failed", 1},
              {"cancelled", 0},
              {"stopped_early", 0},
              {"database", hooked.options.database.string()},
              {"runs", hooked.options.runs.string()}};
  CHECK(events[4] == expected);
  std::set<std::string> ids;
  for (const Json& event : events) ids.insert(event.at("id"));
  CHECK(ids.size() == events.size());

  hooked.deliver();
  CHECK(hooked.events().empty());

  // After a kill between delivery and mark, the same events are delivered again.
  std::string marks = content(hooked.marks());
  for (int line = 0; line < 2; ++line) marks.erase(marks.rfind('\n', marks.size() - 2) + 1);
  std::ofstream(hooked.marks(), std::ios::binary) << marks;
  hooked.deliver();
  CHECK(hooked.events() == std::vector<Json>(events.begin() + 3, events.end()));
  // The same happens after a kill while the mark is written.
  std::ofstream(hooked.marks(), std::ios::binary) << marks << R"({"v":1,"deliv)";
  hooked.deliver();
  CHECK(hooked.events() == std::vector<Json>(events.begin() + 3, events.end()));
  hooked.deliver();
  CHECK(hooked.events().empty());

  // A retried trial causes another sweep_done event.
  hooked.run.options.rerun_failed = true;
  hooked.run.script(2, {{Does::fail}, {}});
  hooked.run.execute();
  hooked.deliver();
  const std::vector<Json> later = hooked.events();
  REQUIRE(words(later) == Words{"trial_finished 2", "sweep_done"});
  CHECK(later[1].at("id") != events[4].at("id"));
  CHECK(later[1].at("done") == 3);
}

TEST_CASE("Trials that ended before the first run with a command cause no events",
          "[orchestrator]") {
  HookedRun hooked(2);
  hooked.run.execute();
  hooked.deliver();
  CHECK(hooked.events().empty());
  hooked.run.options.rerun_trials = {hooked.run.sweep.trials[1].id.value};
  hooked.run.execute();
  hooked.deliver();
  CHECK(words(hooked.events()) == Words{"trial_finished 2", "sweep_done"});
}

TEST_CASE("A trial that used up its retries remains a failure after it was retried",
          "[orchestrator]") {
  HookedRun hooked(1);
  hooked.deliver();
  hooked.run.options.retries = 1;
  hooked.run.script(0, {{Does::crash}, {Does::crash}, {Does::crash}, {}});
  hooked.run.execute();  // killed before it delivers the failure
  hooked.run.options.rerun_failed = true;
  SECTION("by the same rules") {
    hooked.run.execute();
    hooked.deliver();
    CHECK(words(hooked.events()) == Words{"trial_failed 2", "trial_finished 4", "sweep_done"});
  }
  SECTION("with more retries") {
    hooked.run.options.rerun_failed = false;
    hooked.run.options.retries = 5;
    hooked.run.execute();
    hooked.deliver();
    CHECK(words(hooked.events()) == Words{"trial_failed 2", "trial_finished 4", "sweep_done"});
  }
  SECTION("but not if a retry was allowed before it used them up") {
    hooked.run.execute();
    orchestrator::decide(*hooked.run.store, hooked.options.runs,
                         hooked.run.sweep.trials[0].id.value,
                         {protocol::Decision::What::retry, 1, 0});
    hooked.deliver();
    CHECK(words(hooked.events()) == Words{"trial_finished 4", "sweep_done"});
  }
}

TEST_CASE("Attempts of another sweep cause no events", "[orchestrator]") {
  HookedRun hooked(2);
  hooked.deliver();
  hooked.run.execute();
  hooked.run.sweep.name = "another";
  hooked.deliver();  // the first run of a sweep of that name
  CHECK(hooked.events().empty());
  std::ofstream(hooked.marks(), std::ios::binary) << "";
  hooked.deliver();
  CHECK(words(hooked.events()) == Words{"sweep_done"});
}

TEST_CASE("A command that fails is tried three times, and its events are left for the next run",
          "[orchestrator]") {
  HookedRun hooked(2);
  hooked.deliver();
  hooked.run.execute();
  hooked.options.command.text =
      "echo try >> " + hooked.got.string() + "; printf 'no route\\n\\n' >&2; exit 7";
  hooked.deliver();
  CHECK(content(hooked.got) == "try\ntry\ntry\ntry\ntry\ntry\ntry\ntry\ntry\n");
  std::filesystem::remove(hooked.got);
  CHECK(hooked.run.notes ==
        std::vector<std::string>{
            fmt::format("--on-event: trial_finished of {} was not delivered in 3 tries: the "
                        "command ended with exit code 7 (no route)",
                        hooked.run.sweep.trials[0].id.value),
            "--on-event: 3 events are left for the next run with a command"});
  hooked.append();
  hooked.deliver();
  CHECK(words(hooked.events()) == Words{"trial_finished 1", "trial_finished 1", "sweep_done"});
}

TEST_CASE("A command that hangs is killed at its limit", "[orchestrator]") {
  HookedRun hooked(1);
  hooked.deliver();
  hooked.run.execute();
  hooked.options.command.limit = std::chrono::milliseconds(20);
  hooked.options.command.text = "echo try >> " + hooked.got.string() + "; sleep 1000";
  const auto hook = hooked.look();
  hook->status({});
  while (hooked.run.notes.empty()) {
    hooked.io.restart();
    hooked.io.run_one();
  }
  CHECK(hooked.run.notes.front() ==
        fmt::format("--on-event: trial_finished of {} was not delivered in 3 tries: the command "
                    "did not finish within 20 ms",
                    hooked.run.sweep.trials[0].id.value));
  CHECK(content(hooked.got) == "try\ntry\ntry\n");
}

TEST_CASE("A finished run waits for its command until the limit or a signal", "[orchestrator]") {
  HookedRun hooked(2);
  hooked.deliver();
  hooked.run.execute();
  hooked.options.command.text = "sleep 1000";
  const std::vector<std::string> left = {
      "--on-event: 3 events are left for the next run with a command"};
  orchestrator::EventLoop loop(hooked.io);
  SECTION("until a signal") {
    const auto hook = hooked.look();
    boost::asio::post(hooked.io, [&] { hook->stop_waiting(); });
    hook->finish(loop);
    CHECK(hooked.run.notes.size() == 1);
  }
  SECTION("until the limit") {
    hooked.options.command.limit = std::chrono::milliseconds(20);
    hooked.options.command.retry_delay = std::chrono::seconds(1000);
    hooked.look()->finish(loop);
    CHECK(hooked.run.notes == left);
  }
  hooked.append();
  hooked.options.command.limit = std::chrono::seconds(60);
  hooked.deliver();
  CHECK(words(hooked.events()) == Words{"trial_finished 1", "trial_finished 1", "sweep_done"});
}

namespace {

std::optional<std::uintmax_t> free_now;
std::optional<std::uintmax_t> free_in_test(const std::filesystem::path&) { return free_now; }

}  // namespace

TEST_CASE("A run reports a low disk once until enough space is free", "[orchestrator]") {
  HookedRun hooked(1);
  hooked.options.free_bytes = free_in_test;
  hooked.options.disk_interval = std::chrono::milliseconds(0);
  constexpr std::uintmax_t kMib = std::uintmax_t{1} << 20;
  const auto hook = hooked.look();
  for (const std::uintmax_t mib : {2000, 1023, 900, 1100, 10, 1200, 1023}) {
    free_now = mib * kMib;
    hook->status({});
  }
  free_now.reset();  // unknown is not low
  hook->status({});
  orchestrator::EventLoop loop(hooked.io);
  hook->finish(loop);
  const std::vector<Json> events = hooked.events();
  REQUIRE(words(events) == Words{"disk_low", "disk_low"});
  CHECK(events[0].at("free_bytes") == 1023 * kMib);
  CHECK(events[0].at("folder") == hooked.options.runs.string());
  CHECK(events[0].at("id") != events[1].at("id"));
  CHECK(events[0].at("time").get<double>() <= events[1].at("time").get<double>());
}
