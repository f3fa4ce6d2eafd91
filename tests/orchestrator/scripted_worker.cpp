// A worker without a model, for tests: it follows docs/worker.md and does what `user` of its trial
// says. Its numbers depend on the seed and on every step before, so that a wrong resume shows.
//
//   user.steps (4), user.step_ms (0), user.load_ms (0)   how long it takes
//   user.checkpoint_every (0: never)                     a checkpoint each so many steps
//   user.behaviour (finish)                              see kBehaviours; where it happens:
//   user.phase (training)                                begin, loading, training, checkpointing,
//   end user.attempts (1)                                    only attempts up to this number
//   misbehave
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <thread>

#include "sweeps/events.h"
#include "sweeps/trial_directory.h"

namespace {

namespace fs = std::filesystem;
using namespace petlab::sweeps;

volatile sig_atomic_t stop_asked = 0;
void on_stop(int) {
  if (stop_asked != 0) ::_exit(3);
  stop_asked = 1;
}

struct Stopped {};

void pause_ms(double milliseconds) {
  if (milliseconds > 0) {
    std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(milliseconds));
  }
}

std::uint64_t mixed(std::uint64_t x) {  // splitmix64
  x += 0x9E3779B97F4A7C15ull;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}
double unit(std::uint64_t x) { return static_cast<double>(x >> 11) * 0x1.0p-53; }

class EventFile {
 public:
  explicit EventFile(const fs::path& file)
      : fd_(::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644)) {
    if (fd_ < 0) throw std::runtime_error(file.string() + ": cannot be opened");
  }
  ~EventFile() { ::close(fd_); }
  EventFile(const EventFile&) = delete;
  EventFile& operator=(const EventFile&) = delete;

  template <typename Body>
  void write(Body body, bool synced = false) {
    const double now =
        std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
    raw(to_line({seq++, now, std::move(body)}) + "\n");
    if (synced && ::fdatasync(fd_) != 0) throw std::runtime_error("events.jsonl: cannot be synced");
  }
  void raw(const std::string& bytes) {
    if (::write(fd_, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size())) {
      throw std::runtime_error("events.jsonl: cannot be written");
    }
  }
  std::int64_t seq = 0;

 private:
  int fd_;
};

struct Script {
  explicit Script(const TrialFile& trial) : attempt(trial.attempt) {
    const nlohmann::json user = nlohmann::json::parse(trial.config.user);
    steps = user.value("steps", std::int64_t{4});
    checkpoint_every = user.value("checkpoint_every", std::int64_t{0});
    metrics = user.value("metrics", std::int64_t{1});
    step_ms = user.value("step_ms", 0.0);
    load_ms = user.value("load_ms", 0.0);
    behaviour = user.value("behaviour", "finish");
    phase = user.value("phase", "training");
    attempts = user.value("attempts", std::int64_t{1});
  }
  bool misbehaves(const char* name) const { return attempt <= attempts && behaviour == name; }
  std::int64_t attempt, steps, checkpoint_every, metrics, attempts;
  double step_ms, load_ms;
  std::string behaviour, phase;
};

void hang() {
  for (;;) ::pause();
}

// Does what the script says for this phase, where it says anything.
void misbehave(const Script& script, const std::string& phase, EventFile& events) {
  if (script.phase != phase) return;
  if (script.misbehaves("crash")) {
    std::cout << "about to crash in " << phase << std::endl;
    ::abort();
  }
  if (script.misbehaves("kill")) ::kill(::getpid(), SIGKILL);
  if (script.misbehaves("exit")) ::_exit(0);
  if (script.misbehaves("hang")) hang();
  if (script.misbehaves("ignore_sigterm")) {
    ::signal(SIGTERM, SIG_IGN);
    hang();
  }
  if (script.misbehaves("rubbish")) {
    events.raw("this is no event\n");
    hang();
  }
  if (script.misbehaves("lie")) {
    events.seq += 3;
    events.write(Progress{1, 4, 0.5});
    hang();
  }
  if (script.misbehaves("flood_log")) {
    const std::string line(1023, 'x');
    for (int count = 0; count < 8192; ++count) std::cout << line << '\n';
    std::cout.flush();
  }
  if (script.misbehaves("flood_for_ever")) {
    const std::string line(1023, 'x');
    for (;;) std::cout << line << '\n';
  }
  if (script.misbehaves("fork")) {
    // A child in the group that holds everything it inherited and does not listen.
    if (::fork() == 0) {
      ::signal(SIGTERM, SIG_IGN);
      hang();
    }
  }
  if (script.misbehaves("fork_and_crash")) {
    if (::fork() == 0) hang();
    ::abort();
  }
  if (script.misbehaves("error")) throw std::runtime_error("the script says so");
}

// SCRIPTED_NUMERICS makes it another program.
std::string numerics() {
  const char* value = std::getenv("SCRIPTED_NUMERICS");
  return value == nullptr ? "1" : value;
}

void named(const char* phase) { ::prctl(PR_SET_NAME, phase); }

void write_checkpoint(const TrialDirectory& directory, EventFile& events, const Script& script,
                      std::int64_t step, std::uint64_t state) {
  named("w:checkpoint");
  fs::create_directories(directory.checkpoint());
  const std::string name = "step-" + std::to_string(step) + ".txt";
  const fs::path temporary = directory.checkpoint() / (name + ".new");
  {
    std::ofstream out(temporary);
    out << step << " " << state << "\n";
  }
  misbehave(script, "checkpointing", events);
  pause_ms(script.step_ms);
  fs::rename(temporary, directory.checkpoint() / name);
  events.write(Checkpoint{step, "checkpoint/" + name}, true);
  for (const auto& entry : fs::directory_iterator(directory.checkpoint())) {
    if (entry.path().filename() != name) fs::remove(entry.path());
  }
}

void train(const TrialDirectory& directory) {
  named("w:loading");
  const TrialFile trial = read_trial_file(directory.trial_json());
  const Script script(trial);
  EventFile events(directory.events());
  misbehave(script, "begin", events);
  Started started;
  started.pid = ::getpid();
  started.worker = "scripted-worker";
  started.version = "1";
  started.numerics = nlohmann::json({{"version", numerics()}}).dump();
  started.data_digests = trial.data_digests;
  events.write(started);
  misbehave(script, "loading", events);
  pause_ms(script.load_ms);
  std::int64_t step = 0;
  std::uint64_t state = mixed(trial.config.seed.value);
  if (trial.resume) {
    const fs::path checkpoint = directory.folder() / trial.resume->checkpoint;
    std::ifstream in(checkpoint);
    if (!(in >> step >> state) || step != trial.resume->step) {
      events.write(Failed{checkpoint.string() + ": no checkpoint of the step", "error"}, true);
      return;
    }
  }
  named("w:training");
  try {
    while (step < script.steps) {
      pause_ms(script.step_ms);
      ++step;
      state = mixed(state ^ static_cast<std::uint64_t>(step));
      events.write(Progress{step, script.steps, unit(state)});
      for (std::int64_t metric = 0; metric < script.metrics; ++metric) {
        events.write(Metric{step, "train", trial.config.tasks.front(),
                            metric == 0 ? "loss" : "extra_" + std::to_string(metric),
                            unit(mixed(state + static_cast<std::uint64_t>(metric)))});
      }
      if (step == (script.steps + 1) / 2) misbehave(script, "training", events);
      const bool due = script.checkpoint_every > 0 && step % script.checkpoint_every == 0;
      if ((due && step < script.steps) || (stop_asked != 0 && script.checkpoint_every > 0)) {
        write_checkpoint(directory, events, script, step, state);
        named("w:training");
      }
      if (stop_asked != 0) throw Stopped{};
    }
    misbehave(script, "end", events);
    events.write(Metric{step, "test", trial.config.tasks.front(), "score", unit(mixed(state))});
    Finished finished;
    finished.step = step;
    finished.train_seconds = static_cast<double>(script.steps) * script.step_ms / 1000;
    events.write(finished, true);
  } catch (const std::runtime_error& error) {
    events.write(Failed{error.what(), "error"}, true);
  }
  named("w:idle");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::string(argv[1]) == "--describe") {
    std::cout << nlohmann::json({{"name", "scripted-worker"},
                                 {"version", "1"},
                                 {"protocol", 1},
                                 {"numerics", numerics()}})
              << std::endl;
    return 0;
  }
  struct sigaction action {};
  action.sa_handler = on_stop;
  ::sigaction(SIGTERM, &action, nullptr);
  try {
    if (argc == 2 && std::string(argv[1]) == "-") {
      for (std::string line; stop_asked == 0 && std::getline(std::cin, line);) {
        train(TrialDirectory(line));
      }
    } else {
      for (int argument = 1; argument < argc; ++argument) train(TrialDirectory(argv[argument]));
    }
  } catch (const Stopped&) {
    return 3;
  } catch (const std::exception& error) {
    std::cerr << "scripted-worker: " << error.what() << std::endl;
    return 1;
  }
  return stop_asked != 0 ? 3 : 0;
}
