// A worker without a model, for tests. It follows docs/reference/worker-protocol.md and does what
// the `user` group of its trial asks for. Its values depend on the seed and on every earlier step,
// so that a wrong resume shows.
//
//   user.steps (4), user.step_ms (0), user.load_ms (0)   duration
//   user.checkpoint_every (0: never)                     steps from one checkpoint to the next
//   user.validate_every (0: never)                       steps from one validation to the next,
//                                                        which reports accuracy
//   user.best_rate (0: none)                             accuracy is a parabola of the learning
//                                                        rate's logarithm, 1 at this rate and 0
//                                                        three decades away
//   user.gate (none)                                     a file for which it waits after its first
//                                                        checkpoint or first step
//   user.stop_ms (0)                                     how long it takes to stop when asked
//   user.stops (none)                                    a file that gets a letter per SIGTERM
//   user.behaviour (finish)                              see misbehave()
//   user.phase (training)                                where it misbehaves: begin, loading,
//                                                        training, checkpointing or end
//   user.attempts (1)                                    only attempts up to this number
//                                                        misbehave
//   user.gpu_mib (0: none)                               the GPU memory that it takes: half while
//                                                        loading, all from the first step
//
// With SCRIPTED_STOPS_WHOLE in its environment, it does not say that it stops single trials.
//
// It trains the trials of a line of standard input together, each in a thread.
//
// Its GPUs are those of the fake nvidia-smi (tests/orchestrator/fake_nvidia_smi.py) in the folder
// FAKE_GPUS. A file `bad` there contains UUID HOW: every trial on that GPU fails right after it
// began, by crash, exit, error or device. After ten trials the other GPUs wait until three have
// failed there.
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <mutex>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "protocol/events.h"
#include "protocol/trial_directory.h"
#include "tests/support/scripted_values.h"

namespace {

namespace fs = std::filesystem;
using namespace petlab;
using namespace petlab::protocol;
using namespace petlab::sweeps;
using testing::mixed;
using testing::unit;

volatile sig_atomic_t stop_asked = 0;
volatile sig_atomic_t stops_fd = -1;
void on_stop(int) {
  if (stops_fd >= 0) [[maybe_unused]]
    const ssize_t wrote = ::write(stops_fd, "T", 1);
  stop_asked = 1;
}

struct WorkerStopped {};
struct TrialStopped {};
struct Left {};  // continues with the next trial and reports nothing more of this one
struct OutOfMemory {};
struct DeviceFailed {};

// The memory that this process holds of the GPU that CUDA_VISIBLE_DEVICES names: a file UUID.PID
// contains it in MiB. Each request adds a line to `history`: UUID, pid, MiB of all processes,
// number of processes.
class FakeGpu {
 public:
  static FakeGpu& instance() {
    static FakeGpu gpu;
    return gpu;
  }
  bool exists() const { return !folder_.empty() && !uuid_.empty(); }
  std::int64_t held() const { return held_; }

  // How every trial on this GPU fails; empty: the GPU works.
  std::string badness() const {
    std::ifstream bad(folder_ / "bad");
    std::string uuid, how;
    if (!(bad >> uuid >> how)) return {};
    const bool fails = uuid == uuid_;
    // One letter per trial.
    const fs::path failures = folder_ / "failures", others = folder_ / "others_begun";
    std::ofstream(fails ? failures : others, std::ios::app) << "T" << std::flush;
    if (fails) return how;
    while (stop_asked == 0 && fs::file_size(others) > 10 &&
           (!fs::exists(failures) || fs::file_size(failures) < 3)) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    return {};
  }

  // Never releases memory, like a caching allocator. Throws OutOfMemory.
  void take(std::int64_t mib) {
    if (mib <= held_) return;
    const int lock = ::open((folder_ / "lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    ::flock(lock, LOCK_EX);
    std::int64_t sum = mib;
    int processes = 1;
    for (const auto& entry : fs::directory_iterator(folder_)) {
      const std::string name = entry.path().filename();
      if (!name.starts_with(uuid_ + ".")) continue;
      const int pid = std::stoi(name.substr(uuid_.size() + 1));
      if (pid == ::getpid() || !is_alive(pid)) continue;
      std::int64_t used_mib = 0;
      std::ifstream(entry.path()) >> used_mib;
      sum += used_mib;
      ++processes;
    }
    const bool fits = sum <= total();
    if (fits) {
      held_ = mib;
      std::ofstream(folder_ / (uuid_ + "." + std::to_string(::getpid()))) << mib << "\n";
    }
    std::ofstream(folder_ / "history", std::ios::app)
        << uuid_ << " " << ::getpid() << " " << sum << " " << processes << "\n";
    ::close(lock);
    if (!fits) throw OutOfMemory{};
  }

 private:
  static bool is_alive(int pid) {
    std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
    std::string number, name, state;
    return (stat >> number >> name >> state) && state != "Z" && state != "X";
  }
  FakeGpu() {
    const char* folder = std::getenv("FAKE_GPUS");
    const char* uuid = std::getenv("CUDA_VISIBLE_DEVICES");
    if (folder != nullptr) folder_ = folder;
    if (uuid != nullptr) uuid_ = uuid;
  }
  std::int64_t total() const {
    std::ifstream list(folder_ / "gpus");
    std::int64_t index = 0, total = 0;
    for (std::string uuid; list >> index >> uuid >> total;) {
      if (uuid == uuid_) return total;
    }
    throw std::runtime_error(uuid_ + ": no such GPU");
  }
  fs::path folder_;
  std::string uuid_;
  std::int64_t held_ = 0;
};

void pause_ms(double milliseconds) {
  if (milliseconds > 0) {
    std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(milliseconds));
  }
}

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
    validate_every = user.value("validate_every", std::int64_t{0});
    best_rate = user.value("best_rate", 0.0);
    metrics = user.value("metrics", std::int64_t{1});
    gpu_mib = user.value("gpu_mib", std::int64_t{0});
    step_ms = user.value("step_ms", 0.0);
    load_ms = user.value("load_ms", 0.0);
    stop_ms = user.value("stop_ms", 0.0);
    gate = user.value("gate", "");
    stops = user.value("stops", "");
    behaviour = user.value("behaviour", "finish");
    phase = user.value("phase", "training");
    attempts = user.value("attempts", std::int64_t{1});
  }
  bool misbehaves(const char* name) const { return attempt <= attempts && behaviour == name; }
  std::int64_t attempt, steps, checkpoint_every, metrics, attempts, gpu_mib, validate_every;
  double step_ms, load_ms, stop_ms, best_rate;
  std::string behaviour, gate, phase, stops;
};

void hang() {
  for (;;) ::pause();
}

// Misbehaves in the way that the script asks for in this phase, if any.
void misbehave(const Script& script, const std::string& phase, EventFile& events) {
  if (script.phase != phase) return;
  if (script.misbehaves("crash")) {
    std::cout << "about to crash in " << phase << std::endl;
    ::abort();
  }
  if (script.misbehaves("escape_codes")) {
    std::cout << "red \033[31m text" << std::endl;
    ::abort();
  }
  if (script.misbehaves("kill")) ::kill(::getpid(), SIGKILL);
  if (script.misbehaves("exit")) ::_exit(0);
  if (script.misbehaves("exit_3")) ::_exit(3);
  if (script.misbehaves("leave")) throw Left{};
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
    // A child in the group that keeps all inherited files open and ignores SIGTERM.
    if (::fork() == 0) {
      ::signal(SIGTERM, SIG_IGN);
      hang();
    }
  }
  if (script.misbehaves("fork_and_crash")) {
    if (::fork() == 0) hang();
    ::abort();
  }
  if (script.misbehaves("error") || script.misbehaves("gang")) {
    throw std::runtime_error("the script says so");
  }
  if (script.misbehaves("stop_unasked")) throw TrialStopped{};
}

// The environment can set the numerics version (SCRIPTED_NUMERICS), the provenance
// (SCRIPTED_PROVENANCE) and the worker's name (SCRIPTED_NAME).
std::string numerics() {
  const char* value = std::getenv("SCRIPTED_NUMERICS");
  return value == nullptr ? "1" : value;
}

void named(const char* phase) { ::prctl(PR_SET_NAME, phase); }

void sync(const fs::path& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const bool synced = fd >= 0 && ::fsync(fd) == 0;
  ::close(fd);
  if (!synced) throw std::runtime_error(path.string() + ": cannot be synced");
}

// `kept`: the attempt's last two checkpoints.
void write_checkpoint(const TrialDirectory& directory, EventFile& events, const Script& script,
                      std::int64_t step, std::uint64_t state, std::vector<fs::path>& kept) {
  named("w:checkpoint");
  fs::create_directories(directory.checkpoint());
  const std::string name = "step-" + std::to_string(step) + ".txt";
  const fs::path temporary = directory.checkpoint() / (name + ".new");
  {
    std::ofstream out(temporary);
    out << step << " " << state << "\n";
  }
  sync(temporary);
  misbehave(script, "checkpointing", events);
  pause_ms(script.step_ms);
  fs::rename(temporary, directory.checkpoint() / name);
  sync(directory.checkpoint());
  events.write(Checkpoint{step, "checkpoint/" + name}, true);
  kept.push_back(directory.checkpoint() / name);
  if (kept.size() <= 2) return;
  fs::remove(kept.front());
  kept.erase(kept.begin());
}

void train(const TrialDirectory& directory) {
  named("w:loading");
  const TrialFile trial = read_trial_file(directory.trial_json());
  const Script script(trial);
  if (!script.stops.empty() && stops_fd < 0) {
    stops_fd = ::open(script.stops.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  }
  EventFile events(directory.events());
  misbehave(script, "begin", events);
  Started started;
  started.pid = ::getpid();
  started.worker = "scripted-worker";
  started.version = "1";
  started.numerics = nlohmann::json({{"version", numerics()}}).dump();
  started.data_digests = trial.data_digests;
  if (const char* provenance = std::getenv("SCRIPTED_PROVENANCE")) started.provenance = provenance;
  events.write(started);
  misbehave(script, "loading", events);
  const std::string badness = FakeGpu::instance().badness();
  if (badness == "crash") ::abort();
  if (badness == "exit") ::_exit(7);
  if (badness == "error") {
    events.write(Failed{"CUDA error: an illegal memory access was encountered", "error"}, true);
    return;
  }
  if (badness == "device") {
    events.write(Failed{"CUDA error: an illegal memory access was encountered", "device"}, true);
    throw DeviceFailed{};
  }
  FakeGpu& gpu = FakeGpu::instance();
  const bool on_gpu = gpu.exists() && script.gpu_mib > 0;
  if ((trial.device == "cuda") != gpu.exists()) {
    events.write(Failed{"device is " + trial.device + ", not as CUDA_VISIBLE_DEVICES says"}, true);
    return;
  }
  try {
    if (on_gpu) gpu.take(script.gpu_mib / 2);
    pause_ms(script.load_ms);
    if (on_gpu) gpu.take(script.gpu_mib);
  } catch (const OutOfMemory&) {
    events.write(Failed{"CUDA out of memory", "out_of_memory"}, true);
    return;
  }
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
  std::vector<fs::path> checkpoints;
  try {
    while (step < script.steps) {
      pause_ms(script.step_ms);
      ++step;
      state = mixed(state ^ static_cast<std::uint64_t>(step));
      Progress progress{step, script.steps, unit(state)};
      if (on_gpu) progress.device_memory_mib = static_cast<double>(gpu.held());
      events.write(progress);
      for (std::int64_t metric = 0; metric < script.metrics; ++metric) {
        events.write(Metric{step, "train", trial.config.tasks.front(),
                            metric == 0 ? "loss" : "extra_" + std::to_string(metric),
                            unit(mixed(state + static_cast<std::uint64_t>(metric)))});
      }
      if (script.validate_every > 0 && step % script.validate_every == 0) {
        double accuracy = unit(mixed(state + 1000));
        if (script.best_rate > 0) {
          const double decades = std::log10(trial.config.training.learning_rate / script.best_rate);
          accuracy = std::max(0.0, 1 - decades * decades / 9);
        }
        events.write(Metric{step, "validation", trial.config.tasks.front(), "accuracy", accuracy});
      }
      if (step == (script.steps + 1) / 2) misbehave(script, "training", events);
      const bool due = script.checkpoint_every > 0 && step % script.checkpoint_every == 0;
      const auto is_to_stop = [&] { return stop_asked != 0 || fs::exists(directory.stop()); };
      if (is_to_stop()) pause_ms(script.stop_ms);
      const bool stops = is_to_stop();
      if ((due && step < script.steps) || (stops && script.checkpoint_every > 0)) {
        write_checkpoint(directory, events, script, step, state, checkpoints);
        named("w:training");
      }
      while (!script.gate.empty() && step >= script.checkpoint_every && !is_to_stop() &&
             !fs::exists(script.gate)) {
        pause_ms(5);
      }
      if (stop_asked != 0) throw WorkerStopped{};
      if (is_to_stop()) throw TrialStopped{};
    }
    misbehave(script, "end", events);
    events.write(Metric{step, "test", trial.config.tasks.front(), "score", unit(mixed(state))});
    Finished finished;
    finished.step = step;
    finished.train_seconds = static_cast<double>(script.steps) * script.step_ms / 1000;
    finished.examples[trial.config.tasks.front()] = {{"train", 90}, {"validation", 12}};
    if (on_gpu) finished.device_memory_mib = static_cast<double>(gpu.held());
    events.write(finished, true);
  } catch (const std::runtime_error& error) {
    events.write(Failed{error.what(), script.misbehaves("gang") ? "gang" : "error"}, true);
  } catch (const TrialStopped&) {
    events.write(Stopped{step}, true);
  }
  named("w:idle");
}

// Trains the trials of a line: one, or several separated by tabs.
void train_line(const std::string& line) {
  std::vector<std::exception_ptr> ends;
  std::vector<std::thread> trials;
  std::istringstream folders(line);
  std::mutex mutex;
  for (std::string folder; std::getline(folders, folder, '\t');) {
    trials.emplace_back([folder, &ends, &mutex] {
      try {
        train(TrialDirectory(folder));
      } catch (const Left&) {
      } catch (...) {
        const std::lock_guard lock(mutex);
        ends.push_back(std::current_exception());
      }
    });
  }
  for (std::thread& trial : trials) trial.join();
  if (!ends.empty()) std::rethrow_exception(ends.front());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::string(argv[1]) == "--describe") {
    nlohmann::json devices = {"cpu"};
    if (std::getenv("FAKE_GPUS") != nullptr) devices.push_back("cuda");
    const char* const name = std::getenv("SCRIPTED_NAME");
    std::cout << nlohmann::json({{"name", name == nullptr ? "scripted-worker" : name},
                                 {"version", "1"},
                                 {"protocol", 1},
                                 {"numerics", numerics()},
                                 {"devices", devices},
                                 {"stops_trials", std::getenv("SCRIPTED_STOPS_WHOLE") == nullptr},
                                 {"gangs", {{"equal", {"backbone"}}}}})
              << std::endl;
    return 0;
  }
  struct sigaction action {};
  action.sa_handler = on_stop;
  ::sigaction(SIGTERM, &action, nullptr);
  try {
    if (argc == 2 && std::string(argv[1]) == "-") {
      for (std::string line; stop_asked == 0 && std::getline(std::cin, line);) {
        train_line(line);
      }
    } else {
      for (int argument = 1; argument < argc; ++argument) train(TrialDirectory(argv[argument]));
    }
  } catch (const WorkerStopped&) {
    return 3;
  } catch (const DeviceFailed&) {
    return 1;
  } catch (const std::exception& error) {
    std::cerr << "scripted-worker: " << error.what() << std::endl;
    return 1;
  }
  return stop_asked != 0 ? 3 : 0;
}
