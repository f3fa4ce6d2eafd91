#include "cli/running/status.h"

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
#include <optional>
#include <ostream>
#include <span>
#include <stdexcept>

#include "base/signals.h"
#include "cli/live/live_view.h"
#include "cli/live/running_json.h"
#include "cli/options/database_option.h"
#include "cli/options/json_option.h"
#include "cli/options/sweep_arguments.h"
#include "cli/options/trial_arguments.h"
#include "cli/output/patient_output.h"
#include "cli/output/screen.h"
#include "orchestrator/host/wall_clock.h"
#include "orchestrator/planning/current_versions.h"
#include "orchestrator/planning/plan.h"
#include "orchestrator/recovery/control.h"
#include "orchestrator/recovery/evidence.h"
#include "orchestrator/recovery/living_owners.h"
#include "orchestrator/running/best_metric.h"
#include "orchestrator/running/progress_line.h"
#include "reports/text.h"
#include "results/attempt_events.h"
#include "sweeps/error.h"
#include "sweeps/sweep_file.h"

namespace petlab::cli {
namespace {

struct StatusArguments : StoredArguments {
  std::optional<std::int64_t> retries;
  bool json = false;
  bool watch = false;
};

// Interval for redrawing the rows, whose times advance.
constexpr auto kRedrawAfter = std::chrono::milliseconds(500);
// Trials whose attempts are in memory at once.
constexpr std::size_t kFactsAtOnce = 4096;

struct SweepStates {
  std::string name;
  std::int64_t trials = 0;
  std::map<sweeps::TrialState, std::int64_t> states;
  std::map<std::string, std::int64_t> stale;  // by reason
  std::int64_t discarded = 0;  // trials whose result was discarded and not yet recomputed
  std::int64_t hidden = 0;
  std::int64_t steps_saved = 0;  // by stopping trials early
};

// The state of all sweeps of a database.
struct Snapshot {
  std::vector<SweepStates> sweeps;
  std::vector<orchestrator::RunningTrial> running;
  std::vector<LiveFailure> failures;
  std::vector<orchestrator::RunningOrchestrator> orchestrators;
};

// Polls the database and reads only what has changed.
class Observer {
 public:
  explicit Observer(const StatusArguments& arguments)
      : database_(arguments.database_path()),
        runs_(arguments.runs_path()),
        only_(arguments.file.empty() ? "" : sweeps::sweep_name(arguments.file)),
        reader_(database_),
        here_(orchestrator::this_host()),
        living_owners_(runs_, here_),
        versions_(current_versions(arguments, runs_)) {
    context_.runs = runs_;
    context_.retries = arguments.retries;
    context_.liveness = [this](const results::AttemptFacts& attempt) {
      return living_owners_(attempt);
    };
  }

  const std::filesystem::path& database() const { return database_; }
  const std::filesystem::path& runs() const { return runs_; }
  /// True if the runs folder is missing: the database has the scores, but logs, checkpoints and
  /// artifacts are gone.
  bool runs_are_gone() const {
    std::error_code error;
    return !std::filesystem::is_directory(runs_, error);
  }

  /// With `at_once`, changes are read no matter how little time has passed.
  const Snapshot& look(bool at_once) {
    living_owners_ = {runs_, here_};
    snapshot_.orchestrators = orchestrator::running_orchestrators(runs_, here_);
    std::erase_if(snapshot_.orchestrators, [&](const auto& one) { return !is_wanted(one.sweep); });
    const std::int64_t version = reader_.data_version();
    if (version != version_) {
      open_ = reader_.open_attempts();
      progress_.clear();
      for (results::ProgressFacts& one : results::open_progress(reader_)) {
        progress_.emplace(one.attempt.key, std::move(one));
      }
      version_ = version;
      sweeps_are_old_ = true;
    }
    // A state also changes when a worker or its watcher dies, which the database does not record.
    std::vector<orchestrator::Liveness> living;
    for (const results::AttemptFacts& attempt : open_) living.push_back(living_owners_(attempt));
    if (living != living_) {
      living_ = std::move(living);
      sweeps_are_old_ = at_once = true;
    }
    if (sweeps_are_old_ && (at_once || Clock::now() >= sweeps_due_)) {
      const Clock::time_point began = Clock::now();
      look_at_sweeps();
      sweeps_are_old_ = false;
      sweeps_due_ = Clock::now() + kRestPart * (Clock::now() - began);
    }
    look_at_running();
    return snapshot_;
  }

 private:
  using Clock = std::chrono::steady_clock;
  // States of very large sweeps are read less often, so that this takes a tenth of the time.
  static constexpr int kRestPart = 9;

  // Cached facts about a running attempt, so that each poll reads only new ones.
  struct Followed {
    std::string variant;
    std::optional<orchestrator::BestMetric> best;  // absent if the selection metrics are unknown
    std::int64_t next_seq = 0;
  };

  bool is_wanted(const std::string& sweep) const { return only_.empty() || sweep == only_; }

  void look_at_sweeps() {
    snapshot_.sweeps.clear();
    snapshot_.failures.clear();
    std::map<std::string, std::pair<double, LiveFailure>> failures;
    for (const std::string& name : reader_.sweep_names()) {
      if (!is_wanted(name)) continue;
      const results::SweepOutline outline = reader_.outline(name);
      context_.sweep = name;
      SweepStates& states =
          snapshot_.sweeps.emplace_back(SweepStates{name, outline.trials, {}, {}, {}, {}, {}});
      states.discarded = outline.discarded;
      states.hidden = outline.hidden;
      states.steps_saved = outline.steps_saved;
      const auto count = [&](const results::TrialFacts& facts, std::int64_t trials) {
        versions_.put_into(context_, facts);
        const orchestrator::TrialPlan plan = orchestrator::plan_trial({}, facts, context_);
        states.states[plan.state] += trials;
        if (plan.state == sweeps::TrialState::stale) states.stale[plan.why] += trials;
        if (plan.state != sweeps::TrialState::failed) return;
        failures[facts.trial_id] = {
            facts.attempts.back().ended_at.value_or(0),
            {facts.trial_id, std::string(to_string(plan.state)), plan.why, plan.last_lines}};
      };
      for (const auto& [trial_id, trials] : outline.alike) {
        count(reader_.trial_facts(std::vector<std::string>{trial_id}).front(), trials);
      }
      const std::span<const std::string> others = outline.others;
      for (std::size_t at = 0; at < others.size(); at += kFactsAtOnce) {
        for (const results::TrialFacts& facts :
             reader_.trial_facts(others.subspan(at, std::min(kFactsAtOnce, others.size() - at)))) {
          count(facts, 1);
        }
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
    std::map<std::int64_t, Followed> followed;
    for (std::size_t at = 0; at < open_.size(); ++at) {
      const results::AttemptFacts& attempt = open_[at];
      if (living_[at] == orchestrator::Liveness::dead || !is_wanted(attempt.begun.sweep)) continue;
      const auto known = followed_.find(attempt.attempt.key);
      Followed followed_attempt =
          known == followed_.end() ? follow(attempt) : std::move(known->second);
      const auto progress = progress_.find(attempt.attempt.key);
      snapshot_.running.push_back(running(
          attempt, progress == progress_.end() ? nullptr : &progress->second, followed_attempt));
      followed.emplace(attempt.attempt.key, std::move(followed_attempt));
    }
    followed_ = std::move(followed);
  }

  // trial.json contains the selection metrics of the tasks. Without it there is no best value.
  Followed follow(const results::AttemptFacts& attempt) const {
    Followed followed_attempt;
    for (const std::string& variant :
         reader_.variants(attempt.begun.sweep, attempt.attempt.trial_id)) {
      followed_attempt.variant += (followed_attempt.variant.empty() ? "" : ", ") + variant;
    }
    try {
      const protocol::TrialDirectory directory(runs_, attempt.attempt.trial_id,
                                               attempt.attempt.number);
      const protocol::TrialFile file = protocol::read_trial_file(directory.trial_json());
      std::vector<const sweeps::TaskDeclaration*> tasks;
      for (const sweeps::TaskDeclaration& task : file.tasks) tasks.push_back(&task);
      followed_attempt.best.emplace(tasks);
    } catch (const sweeps::Error&) {
    }
    return followed_attempt;
  }

  orchestrator::RunningTrial running(const results::AttemptFacts& attempt,
                                     const results::ProgressFacts* progress,
                                     Followed& followed_attempt) const {
    const double now = orchestrator::wall_clock_seconds();
    orchestrator::RunningTrial trial;
    trial.trial_id = attempt.attempt.trial_id;
    trial.attempt = attempt.attempt.number;
    trial.variant = followed_attempt.variant;
    trial.sweep = attempt.begun.sweep;
    trial.host = attempt.begun.host;
    // The GPU's UUID follows the slot's name.
    trial.slot = attempt.begun.device.substr(0, attempt.begun.device.find(' '));
    const bool queued = orchestrator::in_queue(attempt.begun) && trial.host.empty();
    trial.doing = !attempt.started_at   ? (queued ? "queued" : "starting")
                  : progress == nullptr ? "loading"
                                        : "training";
    trial.device_memory_mib = attempt.device_memory_mib;
    trial.seconds = now - (attempt.launch ? attempt.launch->time : attempt.begun.time);
    if (progress == nullptr) return trial;
    trial.step = progress->step;
    trial.of = progress->of;
    trial.loss = progress->loss;
    if (followed_attempt.best) {
      for (const protocol::Metric& one :
           results::validation_metrics(reader_, attempt.attempt, followed_attempt.next_seq)) {
        followed_attempt.best->add(one);
      }
      trial.best = followed_attempt.best->value();
    }
    trial.seconds_left = orchestrator::seconds_left(
        trial.step, trial.of, attempt.begun.resume ? attempt.begun.resume->step : 0,
        progress->time - attempt.started_at.value_or(progress->time), std::nullopt);
    if (trial.seconds_left) {
      *trial.seconds_left = std::max(0.0, *trial.seconds_left - (now - progress->time));
    }
    return trial;
  }

  std::filesystem::path database_;
  std::filesystem::path runs_;
  std::string only_;  // the sweep file's sweep; empty: all
  results::Reader reader_;
  orchestrator::HostIdentity here_;
  orchestrator::LivingOwners living_owners_;  // valid for the current poll
  orchestrator::CurrentVersions versions_;
  orchestrator::PlanContext context_;
  Snapshot snapshot_;
  std::int64_t version_ = -1;
  std::vector<results::AttemptFacts> open_;                  // as of version_
  std::map<std::int64_t, results::ProgressFacts> progress_;  // by AttemptRef::key
  std::vector<orchestrator::Liveness> living_;               // of open_
  std::map<std::int64_t, Followed> followed_;                // by AttemptRef::key
  bool sweeps_are_old_ = true;
  Clock::time_point sweeps_due_;
};

nlohmann::ordered_json to_json(const Observer& observer, const Snapshot& snapshot) {
  nlohmann::ordered_json document = {{"db", observer.database().string()},
                                     {"runs", observer.runs().string()},
                                     {"runs_gone", observer.runs_are_gone()},
                                     {"sweeps", nlohmann::ordered_json::array()},
                                     {"running", nlohmann::ordered_json::array()},
                                     {"failed", nlohmann::ordered_json::array()},
                                     {"orchestrators", nlohmann::ordered_json::array()}};
  for (const SweepStates& sweep : snapshot.sweeps) {
    nlohmann::ordered_json states = nlohmann::ordered_json::object();
    for (const auto& [state, count] : sweep.states) states[std::string(to_string(state))] = count;
    nlohmann::ordered_json reasons = nlohmann::ordered_json::object();
    for (const auto& [why, count] : sweep.stale) reasons[why] = count;
    document["sweeps"].push_back({{"sweep", sweep.name},
                                  {"trials", sweep.trials},
                                  {"states", states},
                                  {"stale", reasons},
                                  {"discarded", sweep.discarded},
                                  {"hidden", sweep.hidden},
                                  {"steps_saved", sweep.steps_saved}});
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
         count(sweep, {sweeps::TrialState::failed, sweeps::TrialState::cancelled,
                       sweeps::TrialState::stopped});
}

// Set by a signal to redraw the picture or exit.
volatile sig_atomic_t ended = 0;
void on_end(int) { ended = 1; }
void on_resize(int) {}

int watch(Observer& observer, PatientWriter& out) {
  const char* no_colour = std::getenv("NO_COLOR");
  const bool colour = no_colour == nullptr || *no_colour == '\0';
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    base::handle_unless_ignored(signal, on_end);
  }
  base::handle_unless_ignored(SIGWINCH, on_resize);  // interrupts the pause
  Screen screen(out);
  std::map<std::string, orchestrator::FinishRate> rates;
  bool was_running = false;
  bool at_once = true;
  while (ended == 0) {
    const Snapshot& snapshot = observer.look(at_once);
    LivePicture picture;
    picture.running = snapshot.running;
    picture.failures = snapshot.failures;
    picture.colour = colour;
    if (observer.runs_are_gone()) picture.summary.push_back(runs_folder_gone());
    for (const SweepStates& sweep : snapshot.sweeps) {
      const double rate = rates[sweep.name].per_second(with_result(sweep));
      picture.summary.push_back(sweep_text(sweep) + orchestrator::rate_text(rate, left(sweep)));
    }
    const Screen::Size size = screen.size();
    screen.show(draw(picture, size.width, size.height));
    const bool is_running = !snapshot.orchestrators.empty() || !snapshot.running.empty();
    if (was_running && !is_running) {
      // Keep the last picture: it is complete.
      if (at_once) break;
      at_once = true;
      continue;
    }
    at_once = false;
    was_running = is_running;
    const timespec pause{0, std::chrono::nanoseconds(kRedrawAfter).count()};
    ::nanosleep(&pause, nullptr);
  }
  return kDone;
}

int status(const StatusArguments& arguments, Streams streams) {
  Observer observer(arguments);
  if (arguments.watch) {
    PatientOutput out(streams.out);
    const char* term = std::getenv("TERM");
    if (arguments.json || out.writer() == nullptr ||
        !Screen::can_draw(out.writer()->fd(), term == nullptr ? "" : term)) {
      throw std::invalid_argument(arguments.json ? "found --watch and --json, expected one of them"
                                                 : "--watch needs a terminal");
    }
    return watch(observer, *out.writer());
  }
  const Snapshot& snapshot = observer.look(true);
  if (arguments.json) {
    streams.out
        << to_json(observer, snapshot).dump(1, ' ', false, nlohmann::json::error_handler_t::replace)
        << "\n";
    return kDone;
  }
  streams.out << "database: " << observer.database().string()
              << "\nruns: " << observer.runs().string() << "\n";
  if (observer.runs_are_gone()) streams.out << "note: " << runs_folder_gone() << "\n";
  for (const SweepStates& sweep : snapshot.sweeps) {
    streams.out << reports::printable(sweep_text(sweep)) << "\n";
    for (const auto& [why, count] : sweep.stale) {
      streams.out << fmt::format("  {} stale: {}\n", count, reports::printable(why));
    }
    if (sweep.discarded > 0) {
      streams.out << fmt::format("  {} discarded: not rerun yet\n", sweep.discarded);
    }
    if (sweep.steps_saved > 0) {
      streams.out << fmt::format("  stopping early saved {} steps\n", sweep.steps_saved);
    }
    if (sweep.hidden > 0) {
      streams.out << fmt::format("  {} hidden: excluded from reports and answers\n", sweep.hidden);
    }
  }
  for (const auto& one : snapshot.orchestrators) {
    streams.out << fmt::format("petlab run of sweep {}: process {} on {}\n",
                               reports::printable(one.sweep), one.pid,
                               reports::printable(one.host));
  }
  constexpr int kWide = 200;
  LivePicture picture;
  picture.running = snapshot.running;
  picture.failures = snapshot.failures;
  for (const std::string& line : draw(picture, kWide, 0)) {
    streams.out << line << "\n";
  }
  return kDone;
}

}  // namespace

std::function<int()> make_status(CLI::App& app, Streams streams) {
  const auto arguments = std::make_shared<StatusArguments>();
  add_file_argument(app, *arguments, streams);
  add_stored_arguments(app, *arguments);
  add_worker_argument(app, *arguments);
  add_retries_option(app, arguments->retries, "as for petlab run");
  add_json_option(app, arguments->json, "print one JSON object");
  app.add_flag("--watch", arguments->watch,
               "update the display until all runs end (on a terminal)");
  return [arguments, streams] { return status(*arguments, streams); };
}

}  // namespace petlab::cli
