#include "cli/status.h"

#include <fmt/format.h>
#include <signal.h>
#include <time.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <initializer_list>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>
#include <stdexcept>

#include "cli/live_view.h"
#include "cli/patient_output.h"
#include "cli/running_json.h"
#include "cli/screen.h"
#include "cli/sweep_arguments.h"
#include "cli/trial_arguments.h"
#include "orchestrator/best_metric.h"
#include "orchestrator/control.h"
#include "orchestrator/evidence.h"
#include "orchestrator/plan.h"
#include "orchestrator/progress_line.h"
#include "orchestrator/today.h"
#include "orchestrator/wall_clock.h"
#include "sweeps/error.h"

namespace petlab::cli {
namespace {

struct Arguments : StoredArguments {
  std::int64_t retries = 2;
  bool json = false;
  bool watch = false;
};

// How often the rows are drawn anew: their times go on.
constexpr auto kLookAgain = std::chrono::milliseconds(500);

struct SweepStates {
  std::string name;
  std::int64_t trials = 0;
  std::map<sweeps::TrialState, std::int64_t> states;
  std::map<std::string, std::int64_t> stale;  // by the reason
};

// Where all sweeps of a database are.
struct Snapshot {
  std::vector<SweepStates> sweeps;
  std::vector<orchestrator::RunningTrial> running;
  std::vector<LiveFailure> failures;
  std::vector<orchestrator::RunningOrchestrator> orchestrators;
};

// Looks again and again, at no more than has changed.
class Observer {
 public:
  explicit Observer(const Arguments& arguments)
      : database_(arguments.database_path()),
        runs_(arguments.runs_path()),
        reader_(database_),
        here_(orchestrator::this_host()),
        world_(today(arguments, runs_)) {
    context_.runs = runs_;
    context_.retries = arguments.retries;
    context_.liveness = [this](const results::AttemptFacts& attempt) {
      return orchestrator::liveness(attempt.begun, orchestrator::locks_folder(runs_), here_);
    };
  }

  const std::filesystem::path& database() const { return database_; }
  const std::filesystem::path& runs() const { return runs_; }

  const Snapshot& look() {
    const std::int64_t version = reader_.data_version();
    const std::size_t before = snapshot_.orchestrators.size();
    snapshot_.orchestrators = orchestrator::running_orchestrators(runs_, here_);
    // A state also changes when an orchestrator dies.
    if (version != version_ || snapshot_.orchestrators.size() != before) look_at_sweeps();
    version_ = version;
    look_at_running();
    return snapshot_;
  }

 private:
  void look_at_sweeps() {
    snapshot_.sweeps.clear();
    snapshot_.failures.clear();
    variants_.clear();
    std::map<std::string, std::pair<double, LiveFailure>> failures;
    for (const std::string& name : reader_.sweep_names()) {
      const std::optional<results::SweepRow> sweep = reader_.sweep(name);
      if (!sweep) continue;
      std::vector<std::string> ids;
      for (const auto& member : sweep->members) {
        std::string& variant = variants_[{name, member.trial_id}];
        if (variant.empty()) {
          ids.push_back(member.trial_id);
          variant = member.variant;
        } else {
          variant += ", " + member.variant;
        }
      }
      // A sweep without variants has each trial once.
      std::sort(ids.begin(), ids.end());
      ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
      context_.sweep = name;
      SweepStates& states =
          snapshot_.sweeps.emplace_back(SweepStates{name, std::ssize(ids), {}, {}});
      for (const results::TrialFacts& facts : reader_.trial_facts(ids)) {
        world_.put_into(context_, facts);
        const orchestrator::TrialPlan plan = orchestrator::plan_trial({}, facts, context_);
        ++states.states[plan.state];
        if (plan.state == sweeps::TrialState::stale) ++states.stale[plan.why];
        if (plan.state != sweeps::TrialState::failed) continue;
        failures[facts.trial_id] = {
            facts.attempts.back().ended_at.value_or(0),
            {facts.trial_id, std::string(to_string(plan.state)), plan.why, plan.last_lines}};
      }
    }
    std::vector<std::pair<double, LiveFailure>> by_time;
    for (auto& [id, failure] : failures) by_time.push_back(std::move(failure));
    std::stable_sort(by_time.begin(), by_time.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    for (auto& [time, failure] : by_time) snapshot_.failures.push_back(std::move(failure));
  }

  void look_at_running() {
    snapshot_.running.clear();
    const std::vector<results::ProgressFacts> progress = reader_.progress();
    for (const results::AttemptFacts& attempt : reader_.open_attempts()) {
      if (context_.liveness(attempt) == orchestrator::Liveness::dead) continue;
      const auto its = std::find_if(progress.begin(), progress.end(), [&](const auto& one) {
        return one.attempt == attempt.attempt;
      });
      snapshot_.running.push_back(running(attempt, its == progress.end() ? nullptr : &*its));
    }
  }

  orchestrator::RunningTrial running(const results::AttemptFacts& attempt,
                                     const results::ProgressFacts* progress) const {
    const double now = orchestrator::wall_clock_seconds();
    orchestrator::RunningTrial trial;
    trial.trial_id = attempt.attempt.trial_id;
    trial.attempt = attempt.attempt.number;
    const auto variant = variants_.find({attempt.begun.sweep, trial.trial_id});
    if (variant != variants_.end()) trial.variant = variant->second;
    trial.sweep = attempt.begun.sweep;
    trial.host = attempt.begun.host;
    // The GPU's UUID stands behind the slot.
    trial.slot = attempt.begun.device.substr(0, attempt.begun.device.find(' '));
    const bool queued = orchestrator::in_queue(attempt.begun) && trial.host.empty();
    trial.doing = !attempt.started_at   ? queued ? "queued" : "starting"
                  : progress == nullptr ? "loading"
                                        : "training";
    trial.device_memory_mib = attempt.device_memory_mib;
    trial.seconds = now - (attempt.launch ? attempt.launch->time : attempt.begun.time);
    if (progress == nullptr) return trial;
    trial.step = progress->step;
    trial.of = progress->of;
    trial.loss = progress->loss;
    trial.best = best(attempt.attempt);
    trial.seconds_left = orchestrator::seconds_left(
        trial.step, trial.of, attempt.begun.resume ? attempt.begun.resume->step : 0,
        progress->time - attempt.started_at.value_or(progress->time), std::nullopt);
    if (trial.seconds_left) {
      *trial.seconds_left = std::max(0.0, *trial.seconds_left - (now - progress->time));
    }
    return trial;
  }

  // trial.json says by which metrics the tasks select; without it there is no best.
  std::optional<double> best(const results::AttemptRef& attempt) const {
    try {
      const sweeps::TrialDirectory directory(runs_, attempt.trial_id, attempt.number);
      const sweeps::TrialFile file = sweeps::read_trial_file(directory.trial_json());
      std::vector<const sweeps::TaskDeclaration*> tasks;
      for (const sweeps::TaskDeclaration& task : file.tasks) tasks.push_back(&task);
      orchestrator::BestMetric metric(tasks);
      for (const sweeps::Metric& one : reader_.validation_metrics(attempt)) metric.add(one);
      return metric.value();
    } catch (const sweeps::Error&) {
      return std::nullopt;
    }
  }

  std::filesystem::path database_;
  std::filesystem::path runs_;
  results::Reader reader_;
  orchestrator::HostIdentity here_;
  orchestrator::Today world_;
  orchestrator::PlanContext context_;
  Snapshot snapshot_;
  std::int64_t version_ = -1;
  std::map<std::pair<std::string, std::string>, std::string> variants_;  // by sweep and trial
};

nlohmann::ordered_json to_json(const Observer& observer, const Snapshot& snapshot) {
  nlohmann::ordered_json document = {{"db", observer.database().string()},
                                     {"runs", observer.runs().string()},
                                     {"sweeps", nlohmann::ordered_json::array()},
                                     {"running", nlohmann::ordered_json::array()},
                                     {"failed", nlohmann::ordered_json::array()},
                                     {"orchestrators", nlohmann::ordered_json::array()}};
  for (const SweepStates& sweep : snapshot.sweeps) {
    nlohmann::ordered_json states = nlohmann::ordered_json::object();
    for (const auto& [state, count] : sweep.states) states[std::string(to_string(state))] = count;
    nlohmann::ordered_json reasons = nlohmann::ordered_json::object();
    for (const auto& [why, count] : sweep.stale) reasons[why] = count;
    document["sweeps"].push_back(
        {{"sweep", sweep.name}, {"trials", sweep.trials}, {"states", states}, {"stale", reasons}});
  }
  for (const auto& trial : snapshot.running) document["running"].push_back(running_json(trial));
  for (const LiveFailure& failure : snapshot.failures) {
    document["failed"].push_back(
        {{"trial", failure.trial_id}, {"why", failure.reason}, {"last_lines", failure.last_lines}});
  }
  for (const auto& one : snapshot.orchestrators) {
    document["orchestrators"].push_back(
        {{"sweep", one.sweep}, {"pid", one.pid}, {"host", one.host}, {"db", one.database}});
  }
  return document;
}

std::string sweep_text(const SweepStates& sweep) {
  std::string text = fmt::format("sweep {}: {} {}", sweep.name, sweep.trials,
                                 sweep.trials == 1 ? "trial" : "trials");
  const char* separator = ": ";
  for (const auto& [state, count] : sweep.states) {
    text += fmt::format("{}{} {}", separator, count, to_string(state));
    separator = ", ";
  }
  return text;
}

std::int64_t count(const SweepStates& sweep, std::initializer_list<sweeps::TrialState> states) {
  std::int64_t sum = 0;
  for (const sweeps::TrialState state : states) {
    const auto found = sweep.states.find(state);
    if (found != sweep.states.end()) sum += found->second;
  }
  return sum;
}

std::int64_t with_result(const SweepStates& sweep) {
  return count(sweep,
               {sweeps::TrialState::done, sweeps::TrialState::cached, sweeps::TrialState::stale});
}

std::int64_t left(const SweepStates& sweep) {
  return sweep.trials - with_result(sweep) -
         count(sweep, {sweeps::TrialState::failed, sweeps::TrialState::cancelled});
}

// Set by a signal, so that the picture is drawn anew or left.
volatile sig_atomic_t ended = 0;
void on_end(int) { ended = 1; }
void on_resize(int) {}

int watch(Observer& observer, PatientWriter& out) {
  struct sigaction action {};
  action.sa_handler = on_end;
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::sigaction(signal, &action, nullptr);
  action.sa_handler = on_resize;  // ends the pause
  ::sigaction(SIGWINCH, &action, nullptr);
  Screen screen(out);
  std::map<std::string, orchestrator::FinishRate> rates;
  bool went_on = false;
  while (ended == 0) {
    const Snapshot& snapshot = observer.look();
    LivePicture picture{snapshot.running, snapshot.failures, {}};
    for (const SweepStates& sweep : snapshot.sweeps) {
      const double rate = rates[sweep.name].per_second(with_result(sweep));
      picture.summary.push_back(sweep_text(sweep) + orchestrator::rate_text(rate, left(sweep)));
    }
    const Screen::Size size = screen.size();
    screen.show(draw(picture, size.width, size.height));
    const bool goes_on = !snapshot.orchestrators.empty() || !snapshot.running.empty();
    if (went_on && !goes_on) break;
    went_on = goes_on;
    const timespec pause{0, std::chrono::nanoseconds(kLookAgain).count()};
    ::nanosleep(&pause, nullptr);
  }
  return kDone;
}

int status(const Arguments& arguments, Streams streams) {
  Observer observer(arguments);
  if (arguments.watch) {
    PatientOutput out(streams.out);
    const char* term = std::getenv("TERM");
    if (arguments.json || out.writer() == nullptr ||
        !Screen::can_draw(out.writer()->fd(), term == nullptr ? "" : term)) {
      throw std::invalid_argument(arguments.json ? "--watch and --json are given, want one of them"
                                                 : "--watch needs a terminal");
    }
    return watch(observer, *out.writer());
  }
  const Snapshot& snapshot = observer.look();
  if (arguments.json) {
    streams.out
        << to_json(observer, snapshot).dump(1, ' ', false, nlohmann::json::error_handler_t::replace)
        << "\n";
    return kDone;
  }
  streams.out << "database: " << observer.database().string()
              << "\nruns: " << observer.runs().string() << "\n";
  for (const SweepStates& sweep : snapshot.sweeps) {
    streams.out << sweep_text(sweep) << "\n";
    for (const auto& [why, count] : sweep.stale) {
      streams.out << fmt::format("  {} stale: {}\n", count, why);
    }
  }
  for (const auto& one : snapshot.orchestrators) {
    streams.out << fmt::format("petlab run of sweep {}: process {} on {}\n", one.sweep, one.pid,
                               one.host);
  }
  constexpr int kWide = 200;
  for (const std::string& line : draw({snapshot.running, snapshot.failures, {}}, kWide, 0)) {
    streams.out << line << "\n";
  }
  return kDone;
}

}  // namespace

std::function<int()> make_status(CLI::App& app, Streams streams) {
  const auto arguments = std::make_shared<Arguments>();
  add_file_argument(app, *arguments);
  add_stored_arguments(app, *arguments);
  add_worker_argument(app, *arguments);
  add_retries_option(app, arguments->retries, "as for petlab run");
  app.add_flag("--json", arguments->json, "print one JSON object");
  app.add_flag("--watch", arguments->watch,
               "on a terminal: go on, until the runs that go on are over, or Ctrl-C");
  return [arguments, streams] { return status(*arguments, streams); };
}

}  // namespace petlab::cli
