// Kills petlab at random, again and again, and checks that nothing is lost (docs/orchestrator.md).
//
// A sweep is run once undisturbed. Then it is run while orchestrator, guardians and workers are
// killed with SIGKILL, alone or together, at random moments and between any two writes of the
// orchestrator (PETLAB_FAULT_POINT), and started again, until it is complete; and so on with a
// fresh database until enough kills are done. Each time the recorded results must equal the
// undisturbed ones to the last digit, every trial must have finished exactly once, a database made
// anew from the runs folder must say the same, and no process may be left.
//
// Before a kill all processes are stopped (SIGSTOP), so that what each was at is seen for certain.
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
#include <random>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "orchestrator/evidence.h"
#include "orchestrator/fault_point.h"
#include "orchestrator/process_identity.h"
#include "orchestrator/rebuild.h"
#include "results/query.h"
#include "results/store.h"
#include "sweeps/trial_directory.h"

namespace {

namespace fs = std::filesystem;
using namespace petlab;
using Clock = std::chrono::steady_clock;

struct Options {
  std::int64_t kills = 100;
  std::uint64_t seed = 1;
  std::string petlab;
  std::string worker;
  std::string sweep;   // empty: a sweep for the scripted worker
  std::string folder;  // emptied first
  std::int64_t slots = 3;
  double pace = 0.15;  // seconds between kills, at most
  bool keep = false;
};

struct Tally {
  std::map<std::string, std::int64_t> targets;  // by who was killed
  std::map<std::string, std::int64_t> phases;  // by what an attempt was at, at the moment of a kill
  std::map<std::string, std::int64_t> points;  // by fault point
  std::int64_t kills = 0;
  std::int64_t rounds = 0;
  std::int64_t starts = 0;
  std::vector<std::string> problems;
};

// What can be read: a process's files fail while it ends.
std::string read_text(const fs::path& file) {
  std::string text;
  const int fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  char buffer[65536];
  for (ssize_t got = 0; fd >= 0 && (got = ::read(fd, buffer, sizeof buffer)) > 0;) {
    text.append(buffer, static_cast<std::size_t>(got));
  }
  if (fd >= 0) ::close(fd);
  return text;
}

struct Process {
  pid_t pid = 0;
  std::string name;
  char state = '?';
};

// /proc/PID/stat: "pid (name) state ppid …"
std::vector<Process> children_of(pid_t parent) {
  std::vector<Process> found;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const std::string folder = entry.path().filename().string();
    if (folder.find_first_not_of("0123456789") != std::string::npos) continue;
    const std::string stat = read_text(entry.path() / "stat");
    const std::size_t begin = stat.find('(');
    const std::size_t end = stat.rfind(')');
    if (begin == std::string::npos || end == std::string::npos) continue;
    std::istringstream rest(stat.substr(end + 1));
    Process process;
    pid_t its_parent = 0;
    rest >> process.state >> its_parent;
    if (its_parent != parent) continue;
    process.pid = static_cast<pid_t>(std::stol(folder));
    process.name = stat.substr(begin + 1, end - begin - 1);
    found.push_back(process);
  }
  return found;
}

char state_of(pid_t pid) {
  const std::string stat = read_text(fmt::format("/proc/{}/stat", pid));
  const std::size_t end = stat.rfind(')');
  return end == std::string::npos || end + 2 >= stat.size() ? 'X' : stat[end + 2];
}

void stop_and_wait(pid_t pid) {
  ::kill(pid, SIGSTOP);
  for (int tries = 0; tries < 2000; ++tries) {
    const char state = state_of(pid);
    if (state == 'T' || state == 'Z' || state == 'X') return;
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
}

class Campaign {
 public:
  explicit Campaign(Options options) : options_(std::move(options)), random_(options_.seed) {
    folder_ = fs::absolute(options_.folder);
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    if (options_.sweep.empty()) {
      make_sweep();
    } else {
      sweep_ = fs::absolute(options_.sweep);
    }
    ::setenv("PETLAB_SLOTS", (folder_ / "slots").c_str(), 1);
    ::setenv(kMark, folder_.c_str(), 1);
    // Whose parent is killed becomes our child: so it can be seen, and waited for.
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  }

  int run() {
    undisturbed();
    while (tally_.kills < options_.kills && tally_.problems.empty()) round();
    report();
    const bool good = tally_.problems.empty() && all_phases_hit();
    if (good && !options_.keep) fs::remove_all(folder_);
    return good ? 0 : 1;
  }

 private:
  static constexpr const char* kMark = "PETLAB_KILL_CAMPAIGN";

  void make_sweep() {
    sweep_ = folder_ / "sweep.yaml";
    const fs::path backbone = folder_ / "backbone";
    fs::create_directories(backbone);
    std::ofstream(backbone / "config.json")
        << R"({"model_type": "bert", "hidden_size": 32, "num_hidden_layers": 2,
 "num_attention_heads": 2, "intermediate_size": 64, "vocab_size": 100,
 "max_position_embeddings": 64, "type_vocab_size": 2})";
    std::ofstream(backbone / "model.safetensors") << "weights\n";
    std::ofstream(backbone / "vocab.txt") << "[PAD]\n";
    std::ofstream(sweep_) << R"(sweep: kill-campaign
base:
  backbone: ./backbone
  task: cola
  module.kind: adapter
  user: {steps: 8, step_ms: 3, load_ms: 12, checkpoint_every: 2, metrics: 3}
grid:
  seed: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24]
)";
  }

  pid_t start(const fs::path& database, const fs::path& runs, const std::string& fault) {
    ++tally_.starts;
    std::cout.flush();
    const std::vector<std::string> words = {options_.petlab,
                                            "run",
                                            sweep_.string(),
                                            "--db",
                                            database.string(),
                                            "--runs",
                                            runs.string(),
                                            "--slots",
                                            std::to_string(options_.slots),
                                            "--worker",
                                            options_.worker,
                                            "--retries",
                                            "1000000",
                                            "--retry-delay",
                                            "1ms",
                                            "--quiet"};
    const pid_t pid = ::fork();
    if (pid == 0) {
      ::setsid();
      const int log = ::open((folder_ / "petlab.log").c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
      ::dup2(log, 1);
      ::dup2(log, 2);
      if (!fault.empty()) ::setenv(orchestrator::kFaultPointVariable, fault.c_str(), 1);
      std::vector<char*> pointers;
      for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
      pointers.push_back(nullptr);
      ::execv(pointers[0], pointers.data());
      ::_exit(127);
    }
    return pid;
  }

  // The end of the orchestrator, if it has ended; reaps every other child on the way.
  std::optional<int> reap(pid_t orchestrator) {
    std::optional<int> its;
    for (;;) {
      int status = 0;
      const pid_t pid = ::waitpid(-1, &status, WNOHANG);
      if (pid <= 0) return its;
      if (pid == orchestrator) its = status;
    }
  }

  void undisturbed() {
    const fs::path database = folder_ / "undisturbed.db";
    const auto began = Clock::now();
    const pid_t pid = start(database, folder_ / "undisturbed.runs", "");
    int status = 0;
    ::waitpid(pid, &status, 0);
    undisturbed_seconds_ = std::chrono::duration<double>(Clock::now() - began).count();
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
      tally_.problems.push_back("the undisturbed run failed:\n" +
                                read_text(folder_ / "petlab.log"));
      return;
    }
    wanted_ = table(database);
    if (wanted_.rows.empty()) tally_.problems.push_back("the undisturbed run recorded nothing");
  }

  static results::QueryResult table(const fs::path& database) {
    return results::query(
        database,
        "SELECT trial_id, step, split, task, name, value FROM results ORDER BY 1, 2, 3, 4, 5, 6");
  }

  void round() {
    ++tally_.rounds;
    const fs::path database = folder_ / "disturbed.db";
    const fs::path runs = folder_ / "disturbed.runs";
    fs::remove_all(runs);
    for (const char* end : {"", "-wal", "-shm"}) fs::remove(database.string() + end);
    const auto deadline =
        Clock::now() + std::chrono::duration<double>(60 + 40 * undisturbed_seconds_);
    for (bool complete = false; !complete;) {
      // The last start of a round is not disturbed once there were kills enough.
      const bool disturb = tally_.kills < options_.kills;
      const bool armed = disturb && below(10) < 3;
      const pid_t pid = start(database, runs, armed ? fmt::format("any:{}", 1 + below(80)) : "");
      std::optional<int> status;
      while (!status) {
        wait_a_moment(pid, status);
        if (Clock::now() > deadline) {
          tally_.problems.push_back("a round does not end");
          ::kill(pid, SIGKILL);
          return;
        }
        // One that is about to kill itself is mostly let to.
        const bool leave = armed && below(8) != 0;
        if (!status && !leave && tally_.kills < options_.kills) kill_some(pid, database, runs);
        if (!status) status = reap(pid);
      }
      if (WIFSIGNALED(*status) && armed) note_fault_point();
      if (WIFEXITED(*status)) {
        complete = WEXITSTATUS(*status) == 0;
        if (!complete) {
          tally_.problems.push_back(fmt::format("petlab ended with exit code {}:\n{}",
                                                WEXITSTATUS(*status),
                                                read_text(folder_ / "petlab.log")));
          return;
        }
      }
    }
    check(database, runs);
  }

  // Mostly up to the pace, at times longer, so that trials get on; or to the orchestrator's end.
  void wait_a_moment(pid_t pid, std::optional<int>& status) {
    const double most = below(2) == 0 ? options_.pace : 4 * options_.pace;
    const double seconds = most * static_cast<double>(below(1000)) / 1000;
    const auto until = Clock::now() + std::chrono::duration<double>(seconds);
    while (!status && Clock::now() < until) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      status = reap(pid);
    }
  }

  void kill_some(pid_t orchestrator, const fs::path& database, const fs::path& runs) {
    // All at nearly the same moment; what came into being meanwhile follows below.
    std::vector<Process> first = children_of(orchestrator);
    for (const Process& child : first) ::kill(child.pid, SIGSTOP);
    stop_and_wait(orchestrator);
    std::vector<Process> guardians;
    std::vector<Process> workers;
    for (const Process& child : children_of(orchestrator)) {
      if (child.state == 'Z') {
        note_zombie(child.pid);
        continue;
      }
      // Between fork and exec a child still has its parent's name: it is left to itself.
      if (child.name == "petlab") continue;
      (child.name == "petlab-guardian" ? guardians : workers).push_back(child);
      stop_and_wait(child.pid);
    }
    std::vector<pid_t> targets;
    std::string who;
    const auto add = [&](const char* kind, const std::vector<Process>& all) {
      if (all.empty()) return;
      targets.push_back(all[below(all.size())].pid);
      who += (who.empty() ? "" : " + ") + std::string(kind);
    };
    const std::size_t choice = below(10);
    if (choice <= 2 || choice >= 7) {
      targets.push_back(orchestrator);
      who = "orchestrator";
    }
    if (choice == 6 || choice == 7 || choice == 9) add("guardian", guardians);
    if (choice == 3 || choice == 4 || choice == 5 || choice >= 8) add("worker", workers);
    if (!targets.empty()) {
      ++tally_.kills;
      ++tally_.targets[who];
      note_phases(database, runs, orchestrator);
    }
    for (const pid_t pid : targets) ::kill(pid, SIGKILL);
    for (const auto* group : {&first, &guardians, &workers}) {
      for (const Process& process : *group) ::kill(process.pid, SIGCONT);
    }
    ::kill(orchestrator, SIGCONT);
  }

  // What the orchestrator's open attempts were at; everything stands still.
  void note_phases(const fs::path& database, const fs::path& runs, pid_t orchestrator) {
    std::vector<results::AttemptFacts> open;
    try {
      // Who is stopped may hold the database alone: nobody would ever give it free.
      const results::Reader reader(database, std::chrono::milliseconds(5));
      for (const results::AttemptFacts& facts : reader.open_attempts()) {
        const auto owner = orchestrator::owner_name_from(facts.begun.owner);
        if (!owner || owner->pid != orchestrator) continue;
        note_phase(facts, reader.cursor(facts.attempt).offset, runs);
      }
    } catch (const results::Error&) {
      ++tally_.phases[fs::exists(database) ? "opening the database"
                                           : "before the database was there"];
    }
  }

  void note_phase(const results::AttemptFacts& facts, std::int64_t read, const fs::path& runs) {
    const sweeps::TrialDirectory directory(runs, facts.attempt.trial_id, facts.attempt.number);
    const std::string events = read_text(directory.events());
    // Written, and not in the database yet.
    if (static_cast<std::int64_t>(events.rfind('\n') + 1) > read) ++tally_.phases["ingest"];
    std::string last;
    std::istringstream lines(events);
    std::string checkpoint;
    for (std::string line; std::getline(lines, line);) {
      const nlohmann::json event = nlohmann::json::parse(line, nullptr, false);
      if (!event.is_object()) continue;
      last = event.value("type", "");
      if (last == "checkpoint") checkpoint = event.value("path", "");
    }
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(directory.checkpoint(), error)) {
      if (fs::path(checkpoint).filename() == entry.path().filename()) continue;
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

  void note_fault_point() {
    const std::string log = read_text(folder_ / "petlab.log");
    const std::string word = "fault point ";
    const std::size_t at = log.rfind(word);
    // A kill from outside may have come first.
    if (at == std::string::npos || at < log_read_) return;
    const std::size_t begin = at + word.size();
    ++tally_.points[log.substr(begin, log.find('\n', begin) - begin)];
    ++tally_.kills;
    ++tally_.targets["orchestrator at a fault point"];
    log_read_ = begin;
  }

  void check(const fs::path& database, const fs::path& runs) {
    compare(table(database), "the results");
    const results::QueryResult twice = results::query(
        database,
        "SELECT t.trial_id, count(*) FROM trials t LEFT JOIN attempts a ON a.trial = t.key AND "
        "a.outcome = 'finished' GROUP BY 1 HAVING count(a.key) <> 1");
    if (!twice.rows.empty()) {
      tally_.problems.push_back(
          fmt::format("{} trial(s) finished another number of times than once", twice.rows.size()));
    }
    const fs::path anew = folder_ / "anew.db";
    for (const char* end : {"", "-wal", "-shm"}) fs::remove(anew.string() + end);
    orchestrator::rebuild(runs, anew);
    compare(table(anew), "the results of a database made anew");
    // Guardians whose orchestrator was killed may be about to end.
    const auto until = Clock::now() + std::chrono::seconds(15);
    std::vector<pid_t> left;
    do {
      reap(-1);
      left = orchestrator::processes_with_environment(kMark, folder_.string());
      if (left.empty()) break;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    } while (Clock::now() < until);
    if (!left.empty()) {
      tally_.problems.push_back(fmt::format("{} process(es) are left over", left.size()));
    }
    if (::waitpid(-1, nullptr, WNOHANG) >= 0) tally_.problems.push_back("a child is left unreaped");
    for (const auto& entry : fs::directory_iterator(orchestrator::locks_folder(runs))) {
      tally_.problems.push_back("a lock file is left over: " + entry.path().string());
    }
  }

  void compare(const results::QueryResult& found, const std::string& what) {
    if (found.rows == wanted_.rows) return;
    tally_.problems.push_back(fmt::format("{} differ from the undisturbed ones: {} rows for {}",
                                          what, found.rows.size(), wanted_.rows.size()));
  }

  bool all_phases_hit() {
    for (const char* phase : {"loading", "training", "checkpointing", "ingest"}) {
      if (tally_.phases[phase] == 0) {
        std::cout << "no kill fell into " << phase << "\n";
        return false;
      }
    }
    return true;
  }

  void report() {
    const auto print = [](const char* title, const std::map<std::string, std::int64_t>& counts) {
      std::cout << title << "\n";
      for (const auto& [name, count] : counts) std::cout << fmt::format("{:>8} {}\n", count, name);
    };
    std::cout << fmt::format("{} kills in {} rounds, {} starts, seed {}\n", tally_.kills,
                             tally_.rounds, tally_.starts, options_.seed);
    print("killed:", tally_.targets);
    print("what attempts were at when something was killed:", tally_.phases);
    print("fault points:", tally_.points);
    for (const std::string& problem : tally_.problems) std::cout << "PROBLEM: " << problem << "\n";
    if (tally_.problems.empty()) {
      std::cout << fmt::format(
          "0 lost, 0 duplicates, 0 orphans, 0 zombies; {} rows equal to the last digit\n",
          wanted_.rows.size());
    } else {
      std::cout << "kept: " << folder_.string() << "\n";
    }
  }

  std::size_t below(std::size_t bound) {
    return std::uniform_int_distribution<std::size_t>(0, bound - 1)(random_);
  }

  Options options_;
  std::mt19937_64 random_;
  fs::path folder_;
  fs::path sweep_;
  Tally tally_;
  results::QueryResult wanted_;
  double undisturbed_seconds_ = 0;
  std::map<pid_t, Clock::time_point> zombies_;
  std::size_t log_read_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  const fs::path here = fs::read_symlink("/proc/self/exe").parent_path();
  Options options;
  options.petlab = (here / "petlab").string();
  options.worker = (here / "scripted-worker").string();
  options.folder = fs::temp_directory_path() / fmt::format("petlab-kill-campaign-{}", ::getpid());
  CLI::App app("Kills petlab at random and checks that nothing is lost");
  app.add_option("--kills", options.kills, "how many kills");
  app.add_option("--seed", options.seed, "of the random choices");
  app.add_option("--petlab", options.petlab, "the program under test");
  app.add_option("--worker", options.worker, "the worker");
  app.add_option("--sweep", options.sweep, "a sweep file of short trials for that worker");
  app.add_option("--folder", options.folder, "where to work; emptied first");
  app.add_option("--slots", options.slots, "workers at once");
  app.add_option("--pace", options.pace, "seconds between kills, at most");
  app.add_flag("--keep", options.keep, "leave the folder there");
  CLI11_PARSE(app, argc, argv);
  try {
    return Campaign(options).run();
  } catch (const std::exception& error) {
    std::cerr << "kill campaign: " << error.what() << "\n";
    return 1;
  }
}
