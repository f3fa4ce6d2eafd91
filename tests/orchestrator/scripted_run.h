// The launcher, workers and store of a scripted run refer to each other, so they share one file of
// more than 300 lines.
#pragma once

#include <fmt/format.h>

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <deque>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "orchestrator/host/lock_file.h"
#include "orchestrator/records/decide.h"
#include "orchestrator/records/sweep_record.h"
#include "orchestrator/recovery/evidence.h"
#include "orchestrator/running/run.h"
#include "protocol/events.h"
#include "results/store.h"
#include "sweeps/identity.h"
#include "tests/orchestrator/scripted_sweep.h"

namespace petlab::testing {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// A loop with a simulated clock: a wait jumps to the next scheduled action. The kernel still
/// reports changes of files.
class HandLoop final : public orchestrator::EventLoop {
 public:
  explicit HandLoop(boost::asio::io_context& io) : EventLoop(io) {}

  Time now() const override { return now_; }
  double wall_seconds() const override { return 1'000'000 + since_start(); }
  /// Seconds since the test began.
  double since_start() const { return std::chrono::duration<double>(now_ - Time()).count() - 1000; }

  void at(Time time, std::function<void()> act) { acts_.emplace(time, std::move(act)); }
  void in(Clock::duration duration, std::function<void()> act) {
    at(now_ + duration, std::move(act));
  }

  void poll() override {
    io().restart();
    io().poll();
  }
  void wait(std::optional<Time> wake) override {
    io().restart();
    if (io().poll() > 0) return;
    if (acts_.empty() && !wake) throw std::logic_error("the run waits for ever");
    const bool act = !acts_.empty() && (!wake || acts_.begin()->first <= *wake);
    now_ = std::max(now_, act ? acts_.begin()->first : *wake);
    if (!act) return;
    const std::function<void()> next = std::move(acts_.begin()->second);
    acts_.erase(acts_.begin());
    next();
    io().poll();
  }

 private:
  Time now_ = Time() + seconds(1000);
  std::multimap<Time, std::function<void()>> acts_;
};

/// What a scripted worker does with one attempt.
struct ScriptedAttempt {
  enum class Does {
    finish,       ///< after `lasts`
    crash,        ///< begins, and dies by signal 6 after `lasts`
    die,          ///< exits with code 1 before it has begun
    hang,         ///< begins and reports nothing more
    fail,         ///< reports an error after `lasts`
    leave,        ///< begins, reports nothing more and continues with its next trial
    fail_device,  ///< reports after `lasts` that its device failed, and dies
  };
  Does does = Does::finish;
  milliseconds lasts = seconds(10);
  bool hears_stop = true;    // false: only a kill ends it
  bool checkpoints = false;  // right after it begins
  /// Progress reports and the times after its start at which it writes them.
  std::vector<std::pair<milliseconds, protocol::Progress>> reports = {};
  /// The worker is suspended between these times after the start.
  std::pair<milliseconds, milliseconds> suspended = {};
  bool dies = true;  // when it is killed
  /// Starts and ends right after its worker's previous trial, before the run reads anything.
  bool right_away = false;
};

/// Workers that follow a script on a simulated clock, without processes.
class ScriptedLauncher : public orchestrator::Launcher {
 public:
  /// For each trial id, one entry per attempt; the last one also counts for later attempts.
  using Script = std::map<std::string, std::vector<ScriptedAttempt>>;

  ScriptedLauncher(HandLoop& loop, int slots, bool stay)
      : loop_(loop), slots_(slots), stay_(stay) {}

  std::optional<std::string> acquire_slot(std::int64_t gpus) override {
    std::int64_t free = slots_;
    for (const auto& [name, taken] : taken_) free -= taken;
    if (gpus > free) return std::nullopt;
    for (int number = 0; number < slots_; ++number) {
      const std::string name = fmt::format("hand-{}", number);
      if (use_.contains(device_of(name)) && use_[device_of(name)] != DeviceUse::usual) continue;
      if (taken_.emplace(name, gpus).second) return name;
    }
    for (int number = 0; number < slots_; ++number) {
      const std::string name = fmt::format("hand-{}", number);
      if (use_[device_of(name)] == DeviceUse::last && taken_.emplace(name, gpus).second)
        return name;
    }
    return std::nullopt;
  }
  void use_device(const std::string& device, orchestrator::DeviceUse use, std::size_t) override {
    use_[device] = use;
  }
  std::size_t devices() const override {
    if (!has_devices) return 1;
    const auto disabled = std::count_if(use_.begin(), use_.end(), [](const auto& entry) {
      return entry.second == DeviceUse::never;
    });
    return static_cast<std::size_t>(slots_ - disabled);
  }
  void release_slot(const std::string& slot) override { taken_.erase(slot); }
  orchestrator::SlotDevice device(const std::string& slot) const override {
    return {has_devices ? "cuda" : "cpu", device_of(slot), 0};
  }
  std::unique_ptr<orchestrator::Worker> start(
      const std::string& slot, const std::vector<std::filesystem::path>& folders,
      std::function<void(orchestrator::WorkerEnd)> on_end) override {
    ++started;
    return std::make_unique<Worker>(*this, slot, folders.front(), std::move(on_end));
  }
  bool workers_stay() const override { return stay_; }
  std::string kind() const override { return "scripted"; }

  orchestrator::SharedDevices* shared_devices() override { return shared; }

  Script script;
  /// By slot: what every attempt there does; overrides `script`.
  std::map<std::string, ScriptedAttempt> slot_script;
  bool has_devices = false;                       // each slot is a GPU, whose UUID is GPU-SLOT
  int started = 0;                                // number of workers
  orchestrator::SharedDevices* shared = nullptr;  // set if slots are shares of devices

 private:
  using DeviceUse = orchestrator::DeviceUse;
  std::string device_of(const std::string& slot) const { return has_devices ? "GPU-" + slot : ""; }

  class Worker final : public orchestrator::Worker {
   public:
    Worker(ScriptedLauncher& launcher, std::string slot, const std::filesystem::path& first,
           std::function<void(orchestrator::WorkerEnd)> on_end)
        : launcher_(launcher), slot_(std::move(slot)), on_end_(std::move(on_end)) {
      launch_.pid = 1;
      line_.push_back(first);
      later(milliseconds(0), [this] { next(); });
    }
    void submit(const std::vector<std::filesystem::path>& folders) override {
      line_.push_back(folders.front());
      if (!busy_) later(milliseconds(0), [this] { next(); });
    }
    void close() override {
      closed_ = true;
      if (!busy_) later(milliseconds(0), [this] { next(); });
    }
    void log_to(const std::filesystem::path&) override {}
    std::string last_lines(const std::filesystem::path&) override {
      return "the script's last line";
    }
    void stop() override {
      if (script_.hears_stop) later(seconds(1), [this] { end(orchestrator::Exited{3}); });
    }
    void kill() override {
      if (!script_.dies) return;
      later(milliseconds(0), [this] { end(orchestrator::Killed{9}); });
    }
    const results::Launch& launch() const override { return launch_; }
    bool waits() const override { return suspended(); }
    bool suspended() const override {
      if (!busy_) return false;
      const auto since = launcher_.loop_.now() - began_;
      return since >= script_.suspended.first && since < script_.suspended.second;
    }

   private:
    // Runs `act` after `time`, unless the worker is destroyed first.
    void later(milliseconds time, std::function<void()> act) {
      launcher_.loop_.in(time, [alive = std::weak_ptr(alive_), act = std::move(act)] {
        if (!alive.expired()) act();
      });
    }
    void write(decltype(protocol::Event::body) body) {
      std::ofstream out(folder_ / "events.jsonl", std::ios::app);
      out << protocol::to_line({seq_++, launcher_.loop_.wall_seconds(), std::move(body)}) << '\n';
    }
    void next() {
      if (busy_) return;
      if (line_.empty()) {
        if (closed_ || !launcher_.stay_) end(orchestrator::Exited{0});
        return;
      }
      busy_ = true;
      seq_ = 0;
      folder_ = line_.front();
      line_.pop_front();
      const std::vector<ScriptedAttempt>& attempts =
          launcher_.script[folder_.parent_path().filename().string()];
      const std::size_t number = std::stoul(folder_.filename().string());
      script_ =
          attempts.empty() ? ScriptedAttempt{} : attempts[std::min(number, attempts.size()) - 1];
      const auto on_slot = launcher_.slot_script.find(slot_);
      if (on_slot != launcher_.slot_script.end()) script_ = on_slot->second;
      if (script_.does == ScriptedAttempt::Does::die) return end(orchestrator::Exited{1});
      protocol::Started begun;
      begun.pid = 1;
      begun.worker = "scripted";
      begun.version = "1";
      begun.numerics = R"({"version":"1"})";
      write(begun);
      began_ = launcher_.loop_.now();
      for (const auto& [after, progress] : script_.reports) {
        later(after, [this, reported = progress] { write(reported); });
      }
      if (script_.checkpoints) {
        std::filesystem::create_directories(folder_ / "checkpoint");
        std::ofstream(folder_ / "checkpoint/step-1.txt") << "1\n";
        write(protocol::Progress{1, 4, 0.5});
        write(protocol::Checkpoint{1, "checkpoint/step-1.txt"});
      }
      if (script_.right_away) return over();
      if (script_.does == ScriptedAttempt::Does::leave) {
        busy_ = false;
        return next();
      }
      if (script_.does != ScriptedAttempt::Does::hang) {
        later(script_.lasts, [this] { over(); });
      }
    }
    void over() {
      if (script_.does == ScriptedAttempt::Does::crash) return end(orchestrator::Killed{6});
      if (script_.does == ScriptedAttempt::Does::fail) {
        write(protocol::Failed{"the script says so"});
      } else if (script_.does == ScriptedAttempt::Does::fail_device) {
        write(protocol::Failed{"the GPU is lost", "device"});
        return end(orchestrator::Exited{1});
      } else {
        if (script_.reports.empty()) write(protocol::Progress{4, 4, 0.25});
        write(protocol::Finished{4, "", {}, {}, {}, {}});
      }
      busy_ = false;
      next();
    }
    void end(decltype(orchestrator::WorkerEnd::how) how) {
      if (on_end_) std::exchange(on_end_, nullptr)({how, "the script's last line"});
    }

    ScriptedLauncher& launcher_;
    std::string slot_;
    std::function<void(orchestrator::WorkerEnd)> on_end_;
    std::deque<std::filesystem::path> line_;
    std::filesystem::path folder_;
    ScriptedAttempt script_;
    std::int64_t seq_ = 0;
    orchestrator::EventLoop::Time began_;
    bool busy_ = false;
    bool closed_ = false;
    results::Launch launch_;
    std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  };

  HandLoop& loop_;
  int slots_;
  bool stay_;
  std::map<std::string, std::int64_t> taken_;  // slots, with their GPUs
  std::map<std::string, DeviceUse> use_;
};

/// A sweep of scripted trials, run in this process.
class ScriptedRun : public orchestrator::RunObserver {
 public:
  explicit ScriptedRun(int trials, int slots = 2, bool stay = true)
      : ScriptedRun(variants(trials), slots, stay) {}
  /// `variants`: as for ScriptedSweep.
  explicit ScriptedRun(const std::string& variants, int slots = 2, bool stay = true)
      : files(variants), launcher(loop, slots, stay) {
    locations.home = files.folder.path() / "home";
    sweep = sweeps::load_sweep(files.folder.path() / "sweep.yaml", locations);
    options.runs = files.folder.path() / "sweep.runs";
    options.owner = "1-2-hand";
    options.slots = slots;
    const auto locks = orchestrator::locks_folder(options.runs);
    std::filesystem::create_directories(locks);
    lock = orchestrator::LockFile::try_lock(orchestrator::owner_lock(locks, options.owner));
    store.emplace(files.database());
    results::SweepRow row;
    row.name = sweep.name;
    row.file = sweep.file.string();
    row.digest = sweep.digest;
    std::vector<results::TrialRow> rows;
    for (const sweeps::SweepTrial& trial : sweep.trials) {
      rows.push_back({trial.id.value, sweeps::to_json(trial.config).dump(), "", {}, {}});
      row.members.push_back({trial.id.value, trial.variants.front()});
    }
    orchestrator::record_sweep(*store, options.runs, row, rows, loop.wall_seconds());
  }

  /// The script of one trial, by its place in the sweep.
  void script(std::size_t trial, std::vector<ScriptedAttempt> attempts) {
    launcher.script[sweep.trials[trial].id.value] = std::move(attempts);
  }
  orchestrator::RunResult execute() {
    run.emplace(loop, *store, launcher, orchestrator::RunInput{sweep, locations, options}, *this);
    const orchestrator::RunResult result = run->execute();
    run.reset();
    return result;
  }
  /// Seconds after the start at which the attempts of a trial were given to workers.
  std::vector<double> launches(std::size_t trial) const {
    std::vector<double> times;
    for (const results::AttemptFacts& attempt : facts(trial).attempts) {
      times.push_back(attempt.launch ? attempt.launch->time - 1'000'000 : -1);
    }
    return times;
  }
  results::TrialFacts facts(std::size_t trial) const {
    return store->read().trial_facts(std::vector{sweep.trials[trial].id.value}).front();
  }

  void status(const orchestrator::RunStatus& now) override {
    if (on_status) on_status(now);
  }
  void trial_over(const std::string&, sweeps::TrialState, const std::string&,
                  const std::string&) override {}
  void note(const std::string& line) override { notes.push_back(line); }

  static std::string variants(int trials) {
    std::string text;
    for (int seed = 1; seed <= trials; ++seed) text += fmt::format("  v{0}: {{seed: {0}}}\n", seed);
    return text;
  }

  ScriptedSweep files;
  boost::asio::io_context io;
  HandLoop loop{io};
  ScriptedLauncher launcher;
  sweeps::Locations locations;
  sweeps::Sweep sweep;
  orchestrator::RunOptions options;
  std::optional<orchestrator::LockFile> lock;
  std::optional<results::Store> store;
  std::optional<orchestrator::Run> run;
  std::vector<std::string> notes;
  std::function<void(const orchestrator::RunStatus&)> on_status;
};

}  // namespace petlab::testing
