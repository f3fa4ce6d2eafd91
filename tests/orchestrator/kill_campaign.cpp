// Kills petlab repeatedly at random and checks that nothing is lost
// (docs/internals/fault-points.md).
//
// First a sweep runs undisturbed. Then it runs while its orchestrator, guardians and workers are
// killed with SIGKILL, alone or together, and is restarted until it is complete. This repeats with
// a fresh database until enough kills are done. A kill comes
//   - from outside, at a random moment;
//   - at a fault point (PETLAB_FAULT_POINT);
//   - at a call that changes something: each write, sync, rename, mkdir, unlink, lock, fork and
//     kill of the orchestrator, including SQLite's, and also after half of a write (tests/support/
//     fault_shim.cpp). Traces of the runs show which kinds of calls there are.
// Sometimes two to four orchestrators start together, mostly after a kill that left claims behind.
// Some of them are suspended (SIGSTOP) at a fault point or at a random moment, while the others
// continue.
// Each time the recorded results must equal the undisturbed ones to the last digit, every trial
// must have finished exactly once, a database rebuilt from the runs folder must contain the same
// results, and no process and no incomplete file may be left. From 1,000 kills on, each fault point
// and each kind of call must have been hit.
//
// The experiment is one whole from start to end, so it is in one file.
//
// With --events, each run also starts a command for each event: curl, which posts it to a server
// here. Commands are killed, too. Some trials of the sweep then fail or stall. Each event that
// follows from the database must have been delivered at least once, with one id, and nothing else.
//
// With several programs (--petlab, a new and an old version), each start takes one at random, so
// that both work on one database. An old one may refuse a database that a new one has updated.
//
// Before a kill all processes are suspended (SIGSTOP), so that each one's phase is certain.
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "orchestrator/host/fault_point.h"
#include "orchestrator/host/process_identity.h"
#include "orchestrator/records/rebuild.h"
#include "orchestrator/recovery/evidence.h"
#include "protocol/trial_directory.h"
#include "results/attempt_events.h"
#include "results/query.h"
#include "results/store.h"
#include "tests/orchestrator/event_server.h"
#include "tests/orchestrator/traced_calls.h"
#include "tests/orchestrator/watched_processes.h"
#include "tests/support/scripted_values.h"

namespace {

namespace fs = std::filesystem;
using namespace petlab;
using testing::Call;
using testing::call_from;
using testing::children_of;
using testing::EventServer;
using testing::Process;
using testing::read_text;
using testing::stop_and_wait;
using Clock = std::chrono::steady_clock;

struct Options {
  std::int64_t kills = 100;
  std::uint64_t seed = 1;
  std::vector<std::string> petlab;  // files named petlab, the newest version first
  std::string worker;
  std::string faults;  // the library built from tests/support/fault_shim.cpp
  std::string sweep;   // empty: a sweep for the scripted worker
  std::string folder;  // emptied first
  std::int64_t slots = 3;
  double pace = 0.15;  // maximum seconds between kills
  bool keep = false;
  bool events = false;  // with a command for each event
  bool early_stops = false;
  std::int64_t gang = 1;  // trials that a worker trains together
};

// Counts of hits. Traces show which kinds of calls can be hit.
struct Tally {
  std::map<std::string, std::int64_t> targets;  // by the killed processes
  std::map<std::string, std::int64_t> phases;   // by the attempt's phase at a kill
  std::map<std::string, std::int64_t> points;   // by fault point
  std::map<std::string, std::int64_t> calls;    // by kind of call
  std::map<std::string, std::int64_t> pauses;   // by fault point
  std::int64_t kills = 0;
  std::int64_t rounds = 0;
  std::int64_t starts = 0;
  std::int64_t at_once = 0;    // starts together with others
  std::int64_t groups = 0;     // of starts together
  std::int64_t half_made = 0;  // groups after a start that was meant to leave incomplete claims
  std::map<std::string, std::int64_t> events;  // by kind
  std::size_t stops = 0;
  std::int64_t repeated = 0;  // deliveries of an event beyond its first
  std::vector<std::string> problems;
  std::map<std::string, Call> known_calls;  // by name and path
  std::string next_call;                    // where to kill the next start

  // Some calls happen only in the first start after a kill, when it cleans up; so that start is
  // killed there. Once such a call was hit, random choices suffice.
  void kill_next_at(const std::string& call) {
    if (is_unhit(call)) next_call = call;
  }
  bool is_unhit(const std::string& call) { return known_calls.contains(call) && calls[call] == 0; }

  void learn_calls(const fs::path& trace, const fs::path& folder) {
    std::map<std::string, std::int64_t> times;
    std::istringstream lines(read_text(trace));
    for (std::string line; std::getline(lines, line);) {
      const std::optional<Call> kind = call_from(line, folder);
      if (!kind) continue;
      const std::string name = kind->name + " " + kind->path;
      Call& call = known_calls.try_emplace(name, *kind).first->second;
      call.most = std::max(call.most, ++times[name]);
      calls.try_emplace(name, 0);
    }
    for (const auto& [name, count] : times) ++known_calls.at(name).starts;
    fs::remove(trace);
  }

  bool all_phases_hit() {
    for (const char* phase : {"loading", "training", "checkpointing", "ingest"}) {
      if (phases[phase] == 0) {
        std::cout << "no kill fell into " << phase << "\n";
        return false;
      }
    }
    return true;
  }

  // A call counts as missed only if many starts made it.
  bool is_missed(const std::string& name, std::int64_t hits) const {
    const auto call = known_calls.find(name);
    return hits == 0 && (call == known_calls.end() || call->second.starts >= kOftenMade);
  }
  std::int64_t missed() const {
    std::int64_t count = 0;
    for (const auto* kind : {&points, &calls}) {
      for (const auto& [name, hits] : *kind) count += is_missed(name, hits);
    }
    return count;
  }
  std::int64_t name_missed() const {
    for (const auto* kind : {&points, &calls}) {
      for (const auto& [name, hits] : *kind) {
        if (hits > 0) continue;
        std::cout << "no kill fell on " << name
                  << (is_missed(name, hits) ? "\n" : ", which few starts came to\n");
      }
    }
    return missed();
  }

  void print(std::uint64_t seed) const {
    const auto print_counts = [](const char* title,
                                 const std::map<std::string, std::int64_t>& counts) {
      std::cout << title << "\n";
      for (const auto& [name, count] : counts) std::cout << fmt::format("{:>8} {}\n", count, name);
    };
    std::cout << fmt::format("{} kills in {} rounds, {} starts, seed {}\n", kills, rounds, starts,
                             seed);
    std::cout << fmt::format(
        "{} of the starts at once with others, in {} groups, {} of these after a start that was to "
        "leave claims half made\n",
        at_once, groups, half_made);
    print_counts("killed:", targets);
    print_counts("what attempts were at when something was killed:", phases);
    print_counts("fault points:", points);
    print_counts("stood still:", pauses);
    print_counts("calls:", calls);
    if (stops > 0) std::cout << fmt::format("{} trials were stopped early\n", stops);
    if (!events.empty()) {
      print_counts("events:", events);
      std::cout << fmt::format("{:>8} of them delivered again\n", repeated);
    }
  }

 private:
  static constexpr std::int64_t kOftenMade = 50;
};

// An orchestrator that the campaign started.
struct Run {
  pid_t pid = 0;
  bool armed = false;  // it may kill itself
  fs::path trace;
  std::optional<int> status;                      // from waitpid, once it has ended
  std::optional<Clock::time_point> paused_until;  // set while it is suspended
};

// Writes a sweep of short trials for the scripted worker.
fs::path make_sweep(const fs::path& folder, bool events) {
  const fs::path sweep = folder / "sweep.yaml";
  ::setenv("PETLAB_HOME", (folder / "home").c_str(), 1);
  testing::write_unread_backbone(folder / "backbone");
  std::ofstream(sweep) << R"(sweep: kill-campaign
base:
  backbone: ./backbone
  task: sst2
  module.kind: adapter
  user: {steps: 8, step_ms: 3, load_ms: 12, checkpoint_every: 2, metrics: 3, validate_every: 2}
grid:
  seed: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24]
)";
  if (events) {
    std::ofstream(sweep, std::ios::app) << R"(when:
  - if: {seed: [5, 15]}
    set: {user.behaviour: error, user.attempts: 1000000}
  - if: {seed: [10, 20]}
    set: {user.behaviour: hang, user.attempts: 2}
)";
  }
  return sweep;
}

results::QueryResult table(const fs::path& database) {
  return results::query(
      database,
      "SELECT trial_id, step, split, task, name, value FROM results ORDER BY 1, 2, 3, 4, 5, 6");
}

class Campaign {
 public:
  explicit Campaign(Options options) : options_(std::move(options)), random_(options_.seed) {
    folder_ = fs::absolute(options_.folder);
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    if (options_.sweep.empty()) {
      sweep_ = make_sweep(folder_, options_.events);
    } else {
      sweep_ = fs::absolute(options_.sweep);
    }
    ::setenv("PETLAB_SLOTS", (folder_ / "slots").c_str(), 1);
    ::setenv(kMark, folder_.c_str(), 1);
    if (options_.events) {
      server_.emplace();
      // Kills also fall before a delivery.
      ::setenv("PETLAB_ON_EVENT",
               fmt::format(
                   "sleep 0.04; exec curl -sf --noproxy '*' --data-binary @- http://127.0.0.1:{}/",
                   server_->port())
                   .c_str(),
               1);
    }
    // Without this option, the runtime of a sanitized build must be loaded first.
    ::setenv("ASAN_OPTIONS", "verify_asan_link_order=0", 0);
    for (const std::string_view point : orchestrator::kFaultPoints) {
      if (point == "stops_logged" && !options_.early_stops) continue;
      tally_.points[std::string(point)] = 0;
    }
    // A process whose parent is killed becomes our child, so we can see and reap it.
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  }

  int run() {
    undisturbed();
    while (!enough() && tally_.problems.empty()) round();
    report();
    // A short campaign misses some.
    const bool good = tally_.problems.empty() &&
                      (options_.kills < 100 || tally_.all_phases_hit()) &&
                      (options_.kills < 1000 || tally_.name_missed() == 0);
    if (good && !options_.keep) fs::remove_all(folder_);
    return good ? 0 : 1;
  }

 private:
  static constexpr const char* kMark = "PETLAB_KILL_CAMPAIGN";
  // The call of a start that asks the worker of a dead guardian to stop.
  static constexpr const char* kAskedCall = "open */disturbed.runs/.locks/*.cpu-*.lock.asked";

  pid_t start(const fs::path& database, const fs::path& runs, const std::string& point,
              const std::string& faults) {
    ++tally_.starts;
    std::cout.flush();
    const std::string& program = options_.petlab[next_program_];
    if (options_.petlab.size() > 1) next_program_ = below(options_.petlab.size());
    std::vector<std::string> words = {program, "run", sweep_.string(), "--quiet"};
    const auto option = [&](const char* name, const std::string& value) {
      words.insert(words.end(), {name, value});
    };
    option("--db", database.string());
    option("--runs", runs.string());
    option("--slots", std::to_string(options_.slots));
    option("--worker", options_.worker);
    option("--retries", "1000000");
    option("--retry-delay", "1ms");
    option("--gang", std::to_string(options_.gang));
    if (options_.early_stops) words.emplace_back("--resume-stopped");
    if (options_.events) {  // for the trials that hang
      option("--no-progress-limit", "500ms");
      option("--grace", "200ms");
    }
    const pid_t pid = ::fork();
    if (pid == 0) {
      ::setsid();
      const int log = ::open((folder_ / "petlab.log").c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
      ::dup2(log, 1);
      ::dup2(log, 2);
      if (!point.empty()) ::setenv(orchestrator::kFaultPointVariable, point.c_str(), 1);
      if (!faults.empty()) {
        ::setenv("LD_PRELOAD", options_.faults.c_str(), 1);
        ::setenv("PETLAB_TEST_FAULTS", faults.c_str(), 1);
      }
      std::vector<char*> pointers;
      for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
      pointers.push_back(nullptr);
      ::execv(pointers[0], pointers.data());
      ::_exit(127);
    }
    return pid;
  }

  // `first`: the start is meant to leave an incomplete claim.
  Run start_disturbed(const fs::path& database, const fs::path& runs, bool disturb, bool first) {
    Run run;
    run.trace = folder_ / fmt::format("trace-{}", tally_.starts);
    std::string faults = fmt::format("trace program=petlab file={}", run.trace.string());
    std::string point;
    const std::string rare = std::exchange(tally_.next_call, "");
    const std::size_t choice = !disturb ? 0 : first ? 10 : rare.empty() ? below(10) : 3;
    if (choice == 10) {
      point = fmt::format("{}:{}", below(2) == 0 ? "claimed" : "directory_made", 1 + below(6));
    } else if (choice >= 7) {
      const std::string name = one_of_the_least(tally_.points);
      // Few starts live long enough to reach a point often.
      const bool rarely = name.starts_with("recover") || tally_.points[name] == 0;
      point = fmt::format("{}:{}", name, 1 + below(rarely ? 2 : 12));
    } else if (choice >= 3 && !tally_.known_calls.empty()) {
      for (const std::string& name : rare.empty() ? calls_to_hit() : std::vector{rare}) {
        const Call& call = tally_.known_calls.at(name);
        const auto most = static_cast<std::size_t>(std::clamp<std::int64_t>(call.most, 1, 60));
        const std::size_t at = 1 + below(below(2) == 0 ? most : std::min<std::size_t>(most, 3));
        faults += fmt::format(";kill program=petlab calls={} path={} at={}{}", call.name, call.path,
                              at, below(2) == 0 ? " torn" : "");  // if the call is a write
      }
    }
    run.armed = choice >= 3;
    run.pid = start(database, runs, point, faults);
    return run;
  }

  // Starts one of several simultaneous orchestrators. It may be suspended where another can
  // interfere.
  Run start_beside_others(const fs::path& database, const fs::path& runs) {
    // Mostly points where one recovers while another plans from older data.
    static constexpr std::string_view kWhere[] = {
        "facts_read",    "facts_read",     "facts_read",    "planned",      "planned",
        "recover_swept", "recover_swept",  "recover_swept", "recover_done", "recover_forget",
        "claimed",       "directory_made", "committed"};
    Run run;
    std::string point;
    if (below(3) != 0) point = fmt::format("{}:1:stop", kWhere[below(std::size(kWhere))]);
    run.pid = start(database, runs, point, "");
    return run;
  }

  // Starts one orchestrator or several together.
  std::vector<Run> start_some(const fs::path& database, const fs::path& runs, bool disturb) {
    std::vector<Run> all;
    const bool over_half_made = std::exchange(half_made_, false);
    if (disturb && !tally_.next_call.empty()) {  // others could make the call first
      all.push_back(start_disturbed(database, runs, true, false));
      return all;
    }
    if (!disturb || below(3) == 0 || (!over_half_made && below(2) == 0)) {
      half_made_ = disturb && below(2) == 0;
      all.push_back(start_disturbed(database, runs, disturb, half_made_));
      return all;
    }
    const std::size_t count = 2 + below(3);
    ++tally_.groups;
    tally_.half_made += over_half_made;
    tally_.at_once += static_cast<std::int64_t>(count);
    while (all.size() < count) {
      all.push_back(below(over_half_made ? 4 : 2) == 0
                        ? start_disturbed(database, runs, true, false)
                        : start_beside_others(database, runs));
    }
    return all;
  }

  // Mostly a key with the fewest hits; otherwise rare ones would hardly be hit.
  std::string one_of_the_least(const std::map<std::string, std::int64_t>& hits) {
    std::int64_t least = INT64_MAX;
    for (const auto& [name, count] : hits) least = std::min(least, count);
    if (below(4) == 0) least = INT64_MAX;
    std::vector<std::string> names;
    for (const auto& [name, count] : hits) {
      if (count <= least) names.push_back(name);
    }
    return names[below(names.size())];
  }

  // A call for a start to die at. While some were never hit, up to twenty of those: a start makes
  // few of the rare ones.
  std::vector<std::string> calls_to_hit() {
    std::vector<std::string> unhit;
    for (const auto& [name, count] : tally_.calls) {
      if (count == 0) unhit.push_back(name);
    }
    if (unhit.empty()) return {one_of_the_least(tally_.calls)};
    std::shuffle(unhit.begin(), unhit.end(), random_);
    unhit.resize(std::min<std::size_t>(unhit.size(), 20));
    return unhit;
  }

  // Reaps ended processes and continues suspended ones. Returns true once all runs have ended.
  bool reap(std::vector<Run>& runs) {
    for (;;) {
      int status = 0;
      const pid_t pid = ::waitpid(-1, &status, WNOHANG | WUNTRACED);
      if (pid <= 0) break;
      for (Run& run : runs) {
        if (run.pid != pid) continue;
        if (WIFSTOPPED(status)) {
          pause(run);
        } else {
          run.status = status;
        }
      }
    }
    for (Run& run : runs) {
      if (!run.paused_until || (!run.status && Clock::now() < *run.paused_until)) continue;
      run.paused_until.reset();
      if (!run.status) ::kill(run.pid, SIGCONT);
    }
    return std::all_of(runs.begin(), runs.end(), [](const Run& run) { return run.status; });
  }

  // Records that a suspended run is to continue within 0.4 s.
  void pause(Run& run) {
    const double seconds = 0.4 * static_cast<double>(below(1000)) / 1000;
    run.paused_until = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                          std::chrono::duration<double>(seconds));
  }

  void undisturbed() {
    const fs::path database = folder_ / "undisturbed.db";
    const auto began = Clock::now();
    const pid_t pid = start(database, folder_ / "undisturbed.runs", "", "");
    int status = 0;
    ::waitpid(pid, &status, 0);
    undisturbed_seconds_ = std::chrono::duration<double>(Clock::now() - began).count();
    // Failed trials lead to exit code 1.
    complete_code_ = options_.events ? 1 : 0;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != complete_code_ || !is_complete(database)) {
      tally_.problems.push_back("the undisturbed run failed:\n" +
                                read_text(folder_ / "petlab.log"));
      return;
    }
    wanted_ = table(database);
    if (wanted_.rows.empty()) tally_.problems.push_back("the undisturbed run recorded nothing");
    if (server_) check_events(database);
    tally_.events.clear();
    if (!options_.early_stops) return;
    // Every trial that this rule stops is continued by a later start, so the results are the same.
    std::ofstream(sweep_, std::ios::app)
        << "stop_early: {rule: halving, metric: accuracy, at: [1, 2, 3], keep: 1/3}\n";
  }

  void round() {
    ++tally_.rounds;
    const fs::path database = folder_ / "disturbed.db";
    const fs::path runs = folder_ / "disturbed.runs";
    fs::remove_all(runs);
    fs::remove_all(folder_ / "slots");  // creating lock files makes calls that using them does not
    for (const char* end : {"", "-wal", "-shm"}) fs::remove(database.string() + end);
    const auto deadline =
        Clock::now() + std::chrono::duration<double>(60 + 40 * undisturbed_seconds_);
    for (bool complete = false; !complete && tally_.problems.empty();) {
      // Once there are enough kills, the last start of the round is not disturbed.
      const bool disturb = !enough();
      std::vector<Run> runs_at_once = start_some(database, runs, disturb);
      while (!wait_a_moment(runs_at_once)) {
        if (Clock::now() > deadline) {
          tally_.problems.push_back("a round does not end");
          for (const Run& run : runs_at_once) ::kill(run.pid, SIGKILL);
          return;
        }
        if (enough()) continue;
        if (runs_at_once.size() > 1 && below(2) == 0) {
          pause_one(runs_at_once);
        } else {
          kill_some(runs_at_once, database, runs);
        }
      }
      note_own_kills();
      for (const Run& run : runs_at_once) {
        tally_.learn_calls(run.trace, folder_);
        if (!WIFEXITED(*run.status)) continue;
        const int code = WEXITSTATUS(*run.status);
        complete = complete || (code == complete_code_ && is_complete(database));
        if (!complete && code != 0 && !stopped_slot() && !refused() && !knew_no_gangs()) {
          tally_.problems.push_back(
              fmt::format("petlab ended with exit code {}:\n{}", code,
                          log_.substr(log_.size() - std::min<std::size_t>(log_.size(), 2000))));
        }
      }
    }
    if (!tally_.problems.empty()) return;
    // One of two simultaneous runs may have died when the other had nothing left to wait for. The
    // next start, which finds everything done, cleans up after it. A newly forked guardian holds
    // its locks until it is scheduled.
    wait_for_left_over();
    next_program_ = 0;
    const pid_t last = start(database, runs, "", "");
    int status = 0;
    ::waitpid(last, &status, 0);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != complete_code_) {
      tally_.problems.push_back(fmt::format(
          "the start after the complete one did not end with exit code {}", complete_code_));
    }
    check(database, runs);
    if (options_.early_stops) {
      tally_.stops += results::query(database, "SELECT 1 FROM early_stops").rows.size();
    }
    if (server_) check_events(database);
  }

  // Three workers in a row that died before they began disable a slot. Kills can cause that.
  bool stopped_slot() const {
    return log_.find("three workers in a row", log_checked_) != std::string::npos;
  }

  // True if every trial has an end that no further run changes.
  static bool is_complete(const fs::path& database) {
    return results::query(database,
                          "SELECT 1 FROM trials t WHERE NOT EXISTS (SELECT 1 FROM attempts a WHERE "
                          "a.trial = t.key AND a.outcome IN ('finished', 'failed'))")
        .rows.empty();
  }

  // An old program refuses a database that a new one has updated.
  bool refused() const {
    return options_.petlab.size() > 1 &&
           log_.find("this petlab knows up to", log_checked_) != std::string::npos;
  }

  // If its worker was killed while it described itself, a run does not know that it can train
  // gangs.
  bool knew_no_gangs() const {
    return options_.gang > 1 &&
           log_.find("--describe was killed by signal 9", log_checked_) != std::string::npos;
  }

  // Waits mostly up to the pace, sometimes longer so that trials progress. Returns true once all
  // runs have ended.
  bool wait_a_moment(std::vector<Run>& runs) {
    const double most = below(2) == 0 ? options_.pace : 4 * options_.pace;
    const double seconds = most * static_cast<double>(below(1000)) / 1000;
    const auto until = Clock::now() + std::chrono::duration<double>(seconds);
    while (!reap(runs)) {
      if (Clock::now() >= until) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return true;
  }

  // Suspends one orchestrator for a moment, while its workers and the others continue.
  void pause_one(std::vector<Run>& all) {
    Run& chosen = all[below(all.size())];
    if (chosen.status || chosen.paused_until) return;
    ::kill(chosen.pid, SIGSTOP);
    pause(chosen);
    ++tally_.pauses["at a random moment"];
  }

  void kill_some(const std::vector<Run>& all, const fs::path& database, const fs::path& runs) {
    std::vector<const Run*> alive;
    for (const Run& run : all) {
      if (!run.status) alive.push_back(&run);
    }
    if (alive.empty()) return;
    const Run& chosen = *alive[below(alive.size())];
    // An armed run is mostly left to kill itself, also where a loaded machine makes it slow. Some
    // fault points are passed only after a worker has died.
    const bool left_alone = chosen.armed && below(32) != 0;
    if (left_alone && below(3) != 0) return;
    const pid_t orchestrator = chosen.pid;
    // Suspends all children at nearly the same moment; those forked since then follow below.
    std::vector<Process> first = children_of(orchestrator);
    for (const Process& child : first) ::kill(child.pid, SIGSTOP);
    stop_and_wait(orchestrator);
    std::vector<Process> guardians;
    std::vector<Process> workers;
    std::vector<Process> commands;
    for (const Process& child : children_of(orchestrator)) {
      if (child.state == 'Z') {
        note_zombie(child.pid);
        continue;
      }
      // Between fork and exec a child still has its parent's name; it is left alone.
      if (child.name == "petlab") continue;
      const bool is_command = server_ && (child.name == "sh" || child.name == "curl");
      (child.name == "petlab-guardian" ? guardians
       : is_command                    ? commands
                                       : workers)
          .push_back(child);
      stop_and_wait(child.pid);
    }
    std::vector<pid_t> targets;
    std::string who;
    const auto named = [&](const std::string& kind) { who += (who.empty() ? "" : " + ") + kind; };
    // Targets one process of a group, or all of them.
    const auto add = [&](const std::string& kind, const std::vector<Process>& group) {
      if (group.empty()) return;
      const bool every = group.size() > 1 && below(3) == 0;
      const std::size_t only = below(group.size());
      for (std::size_t at = 0; at < group.size(); ++at) {
        if (every || at == only) targets.push_back(group[at].pid);
      }
      named(every ? "all " + kind + "s" : kind);
    };
    const bool wanted = alive.size() == 1 && tally_.is_unhit(kAskedCall) && below(3) == 0;
    const std::size_t choice = left_alone ? 3 + below(4) : wanted ? 7 : below(10);
    if (choice <= 2 || choice >= 7) {
      targets.push_back(orchestrator);
      named("orchestrator");
      if (alive.size() > 1 && below(3) == 0) {
        targets.push_back(alive[0] == &chosen ? alive[1]->pid : alive[0]->pid);
        named("another orchestrator");
      }
    }
    if (choice == 6 || choice == 7 || choice == 9) add("guardian", guardians);
    if (choice == 3 || choice == 4 || choice == 5 || choice >= 8) add("worker", workers);
    // Otherwise the command of a killed orchestrator lives until the kernel kills it.
    if (!commands.empty() && below(2) == 0) add("command", commands);
    if (!targets.empty()) {
      ++tally_.kills;
      ++tally_.targets[who];
      note_phases(database, runs, orchestrator);
    }
    for (const pid_t pid : targets) ::kill(pid, SIGKILL);
    // The next start asks workers without a guardian to stop.
    if (choice == 7 && alive.size() == 1 && !workers.empty()) {
      tally_.kill_next_at(kAskedCall);
    }
    for (const auto* group : {&first, &guardians, &workers, &commands}) {
      for (const Process& process : *group) ::kill(process.pid, SIGCONT);
    }
    ::kill(orchestrator, SIGCONT);
  }

  // Counts the phases of the orchestrator's open attempts, while all its processes are suspended.
  void note_phases(const fs::path& database, const fs::path& runs, pid_t orchestrator) {
    std::vector<results::AttemptFacts> open;
    try {
      // A suspended process may hold the database's lock and never release it, so the wait is
      // short.
      const results::Reader reader(database, std::chrono::milliseconds(5));
      for (const results::AttemptFacts& facts : reader.open_attempts()) {
        const auto owner = orchestrator::owner_name_from(facts.begun.owner);
        if (!owner || owner->pid != orchestrator) continue;
        note_phase(facts, results::cursor_of(reader, facts.attempt).offset, runs);
      }
    } catch (const results::Error&) {
      ++tally_.phases[fs::exists(database) ? "opening the database"
                                           : "before the database was there"];
    }
  }

  void note_phase(const results::AttemptFacts& facts, std::int64_t read, const fs::path& runs) {
    const protocol::TrialDirectory directory(runs, facts.attempt.trial_id, facts.attempt.number);
    const std::string events = read_text(directory.events());
    // Some events are not in the database yet.
    if (static_cast<std::int64_t>(events.rfind('\n') + 1) > read) ++tally_.phases["ingest"];
    std::string last;
    std::istringstream lines(events);
    std::set<std::string> checkpoints;
    for (std::string line; std::getline(lines, line);) {
      const nlohmann::json event = nlohmann::json::parse(line, nullptr, false);
      if (!event.is_object()) continue;
      last = event.value("type", "");
      if (last == "checkpoint") checkpoints.insert(event.value("path", ""));
    }
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(directory.checkpoint(), error)) {
      if (checkpoints.contains("checkpoint/" + entry.path().filename().string())) continue;
      ++tally_.phases["checkpointing"];
      return;
    }
    ++tally_.phases[last.empty() || last == "started" ? "loading" : "training"];
  }

  void note_zombie(pid_t pid) {
    const auto [seen, fresh] = zombies_.try_emplace(pid, Clock::now());
    if (!fresh && Clock::now() - seen->second > std::chrono::seconds(1)) {
      tally_.problems.push_back(fmt::format("process {} is a zombie for more than a second", pid));
    }
  }

  // Counts the kills that orchestrators logged before killing themselves. A kill from outside may
  // have come first.
  void note_own_kills() {
    log_checked_ = log_.size();
    log_ = read_text(folder_ / "petlab.log");
    std::istringstream lines(log_.substr(log_checked_));
    for (std::string line; std::getline(lines, line);) {
      const std::string point = "fault point ";
      const std::string call = "killed at ";
      const std::string stopped = "stopped at fault point ";
      if (line.starts_with(stopped)) {
        ++tally_.pauses["at " + line.substr(stopped.size())];
        continue;
      }
      if (line.starts_with(point)) {
        const std::string name = line.substr(point.size());
        ++tally_.points[name];
        if (name == "directory_written") tally_.kill_next_at("remove */disturbed.runs/*/.*.new-*");
        ++tally_.targets["orchestrator at a fault point"];
      } else if (line.starts_with(call)) {
        const std::optional<Call> kind = call_from(line.substr(call.size()), folder_);
        if (!kind) continue;
        ++tally_.calls[kind->name + " " + kind->path];
        if (kind->path.ends_with(".??????")) tally_.kill_next_at("unlink " + kind->path);
        ++tally_.targets["orchestrator at a call"];
      } else {
        continue;
      }
      ++tally_.kills;
    }
  }

  void check(const fs::path& database, const fs::path& runs) {
    compare(table(database), "the results");
    const results::QueryResult twice = results::query(
        database,
        "SELECT t.trial_id, count(*) FROM trials t LEFT JOIN attempts a ON a.trial = t.key AND "
        "a.outcome IN ('finished', 'failed') GROUP BY 1 HAVING count(a.key) <> 1");
    if (!twice.rows.empty()) {
      tally_.problems.push_back(fmt::format(
          "{} trial(s) finished or failed another number of times than once", twice.rows.size()));
    }
    const fs::path rebuilt = folder_ / "anew.db";
    for (const char* end : {"", "-wal", "-shm"}) fs::remove(rebuilt.string() + end);
    orchestrator::rebuild(runs, rebuilt);
    compare(table(rebuilt), "the results of a rebuilt database");
    const std::vector<pid_t> left = wait_for_left_over();
    if (!left.empty()) {
      tally_.problems.push_back(fmt::format("{} process(es) are left over", left.size()));
    }
    if (::waitpid(-1, nullptr, WNOHANG) >= 0) tally_.problems.push_back("a child is left unreaped");
    for (const auto& entry : fs::directory_iterator(orchestrator::locks_folder(runs))) {
      tally_.problems.push_back("a lock file is left over: " + entry.path().string());
    }
    // Incomplete files and folders have special names.
    static const std::regex half_made(".*\\.new-.*|.*\\.(?:jsonl?|delivered)\\.[A-Za-z0-9]{6}");
    for (const auto& entry : fs::recursive_directory_iterator(folder_)) {
      if (!std::regex_match(entry.path().filename().string(), half_made)) continue;
      // A worker killed during a checkpoint may leave its temporary file.
      if (entry.path().parent_path().filename() == "checkpoint") continue;
      tally_.problems.push_back("left half made: " + entry.path().string());
    }
  }

  // Compares the events that the server received with those that follow from the database.
  void check_events(const fs::path& database) {
    const results::QueryResult rows = results::query(
        database,
        "SELECT CASE outcome WHEN 'finished' THEN 'trial_finished' WHEN 'stalled' THEN "
        "'trial_stalled' ELSE 'trial_failed' END, trial_id, number, outcome, ended_at FROM "
        "attempts JOIN trials ON trials.key = trial WHERE outcome IN ('finished', 'stalled', "
        "'failed', 'timed_out')");
    std::set<std::string> wanted;
    std::int64_t failed = 0;
    for (const auto& row : rows.rows) {
      const std::string event = std::get<std::string>(row[0]);
      failed += event == "trial_failed";
      wanted.insert(fmt::format("{} {} {} {} {}", event, std::get<std::string>(row[1]),
                                std::get<std::int64_t>(row[2]), std::get<std::string>(row[3]),
                                nlohmann::json(std::get<double>(row[4])).dump()));
    }
    const std::int64_t trials = std::get<std::int64_t>(
        results::query(database, "SELECT count(*) FROM trials").rows.at(0).at(0));
    wanted.insert(fmt::format("sweep_done {} {} {} 0", trials, trials - failed, failed));
    std::map<std::string, std::string> by_id;  // the body of each id
    std::set<std::string> delivered;
    const auto problem = [&](const std::string& what, const std::string& which) {
      tally_.problems.push_back(fmt::format("{}: {}", what, which));
    };
    for (const std::string& body : server_->take_bodies()) {
      const nlohmann::json event = nlohmann::json::parse(body, nullptr, false);
      if (!event.is_object()) {
        problem("a delivered event is no JSON object", body);
        continue;
      }
      const auto [known, is_new] = by_id.try_emplace(event.at("id"), body);
      if (!is_new) {
        ++tally_.repeated;
        if (known->second != body) problem("two events have one id", known->second + body);
        continue;
      }
      const std::string kind = event.at("event");
      ++tally_.events[kind];
      const std::string key =
          kind == "sweep_done"
              ? fmt::format("{} {} {} {} {}", kind, event.at("total").dump(),
                            event.at("done").dump(), event.at("failed").dump(),
                            event.at("cancelled").dump())
              : fmt::format("{} {} {} {} {}", kind, event.at("trial").get<std::string>(),
                            event.at("attempt").dump(), event.at("outcome").get<std::string>(),
                            event.at("time").dump());
      if (!delivered.insert(key).second) problem("one event has two ids", body);
      if (!wanted.contains(key)) problem("an event was delivered that did not happen", body);
    }
    for (const std::string& key : wanted) {
      if (!delivered.contains(key)) problem("an event was not delivered", key);
    }
  }

  // Waits up to 15 s for the guardians of killed orchestrators to end. Returns the processes that
  // are left.
  std::vector<pid_t> wait_for_left_over() {
    const auto until = Clock::now() + std::chrono::seconds(15);
    for (;;) {
      std::vector<Run> none;
      reap(none);
      const std::vector<pid_t> left =
          orchestrator::processes_with_environment(kMark, folder_.string());
      if (left.empty() || Clock::now() >= until) return left;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }

  void compare(const results::QueryResult& found, const std::string& what) {
    if (found.rows == wanted_.rows) return;
    tally_.problems.push_back(fmt::format("{} differ from the undisturbed ones: {} rows for {}",
                                          what, found.rows.size(), wanted_.rows.size()));
  }

  // A long campaign continues for a while if something was not hit yet.
  bool enough() const {
    if (tally_.kills < options_.kills) return false;
    return options_.kills < 1000 || tally_.missed() == 0 || tally_.kills >= 2 * options_.kills;
  }

  void report() {
    tally_.print(options_.seed);
    for (const std::string& problem : tally_.problems) std::cout << "PROBLEM: " << problem << "\n";
    if (tally_.problems.empty()) {
      std::cout << fmt::format(
          "0 lost, 0 duplicates, 0 orphans, 0 zombies; {} rows equal to the last digit\n",
          wanted_.rows.size());
      if (server_) std::cout << "each event delivered at least once, with one id\n";
    } else {
      std::cout << "kept: " << folder_.string() << "\n";
    }
  }

  std::size_t below(std::size_t bound) {
    return std::uniform_int_distribution<std::size_t>(0, bound - 1)(random_);
  }

  Options options_;
  std::mt19937_64 random_;
  std::optional<EventServer> server_;
  int complete_code_ = 0;  // exit code of a run that leaves nothing to do
  fs::path folder_;
  fs::path sweep_;
  Tally tally_;
  results::QueryResult wanted_;
  double undisturbed_seconds_ = 0;
  std::map<pid_t, Clock::time_point> zombies_;
  std::size_t next_program_ = 0;
  bool half_made_ = false;  // the last start was meant to leave incomplete claims
  std::string log_;
  std::size_t log_checked_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  const fs::path here = fs::read_symlink("/proc/self/exe").parent_path();
  Options options;
  options.petlab = {(here / "petlab").string()};
  options.worker = (here / "scripted-worker").string();
  options.faults = (here / "petlab-faults.so").string();
  options.folder = fs::temp_directory_path() / fmt::format("petlab-kill-campaign-{}", ::getpid());
  CLI::App app("Kills petlab at random and checks that nothing is lost");
  app.add_option("--kills", options.kills, "how many kills");
  app.add_option("--seed", options.seed, "of the random choices");
  app.add_option("--petlab", options.petlab,
                 "the program under test; several, newest first: each start takes one");
  app.add_option("--worker", options.worker, "the worker");
  app.add_option("--faults", options.faults, "the library that kills at calls");
  app.add_option("--sweep", options.sweep, "a sweep file of short trials for that worker");
  app.add_option("--folder", options.folder, "where to work; emptied first");
  app.add_option("--slots", options.slots, "workers at once");
  app.add_option("--pace", options.pace, "seconds between kills, at most");
  app.add_flag("--events", options.events, "also check the events of PETLAB_ON_EVENT");
  app.add_flag("--early-stops", options.early_stops, "stop and resume trials that lose");
  app.add_option("--gang", options.gang, "trials that a worker trains together");
  app.add_flag("--keep", options.keep, "leave the folder there");
  CLI11_PARSE(app, argc, argv);
  try {
    return Campaign(options).run();
  } catch (const std::exception& error) {
    std::cerr << "kill campaign: " << error.what() << "\n";
    return 1;
  }
}
