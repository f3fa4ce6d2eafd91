#include "orchestrator/running/event_hook.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <span>
#include <stdexcept>
#include <utility>

#include "base/files.h"
#include "base/sha256.h"
#include "orchestrator/host/process_identity.h"
#include "orchestrator/host/wall_clock.h"
#include "orchestrator/planning/plan.h"
#include "protocol/record_lines.h"
#include "protocol/trial_directory.h"
#include "results/decisions.h"
#include "results/trial_state.h"

namespace petlab::orchestrator {
namespace {

using results::AttemptFacts;
using results::Outcome;
using results::TrialFacts;
using sweeps::TrialState;

constexpr std::string_view kTrialFinished = "trial_finished";
constexpr std::string_view kTrialFailed = "trial_failed";
constexpr std::string_view kTrialStalled = "trial_stalled";
constexpr std::string_view kSweepDone = "sweep_done";
constexpr std::string_view kDiskLow = "disk_low";

// Below this, a disk is low: a few checkpoints still fit. It is no longer low with a tenth more.
constexpr std::uintmax_t kLowDisk = std::uintmax_t{1} << 30;
constexpr std::uintmax_t kEnoughDisk = kLowDisk + kLowDisk / 10;

std::string event_id(std::string_view text) {
  constexpr std::size_t kPrefix = std::string_view("sha256:").size();
  return base::sha256(text).substr(kPrefix, 32);
}

// Owner and time distinguish attempts of two machines at the same trial.
std::string event_id(std::string_view event, const AttemptFacts& attempt) {
  return event_id(fmt::format("{}\n{}\n{}\n{}\n{:.6f}", event, attempt.attempt.trial_id,
                              attempt.attempt.number, attempt.begun.owner, attempt.begun.time));
}

// An open attempt counts as running, and a stale result as done.
TrialState state_for_events(const TrialFacts& facts, const std::string& sweep,
                            std::optional<std::int64_t> retries) {
  results::StateContext context;
  context.sweep = sweep;
  context.retries = retries;
  context.alive = [](const AttemptFacts&) { return true; };
  context.outdated = [](const AttemptFacts&) { return false; };
  return results::state_of(facts, context).state;
}

// Calls `take` with each event of a trial, in the order of attempts. `retried_after` are the
// attempts after which a retry was allowed, in order.
void each_event(
    const TrialFacts& facts, const std::vector<std::int64_t>& retried_after,
    const std::string& sweep, std::optional<std::int64_t> retries,
    const std::function<void(std::string_view event, const AttemptFacts& attempt)>& take) {
  const bool failed = state_for_events(facts, sweep, retries) == TrialState::failed;
  TrialFacts then;  // when the attempt had ended
  then.attempts.reserve(facts.attempts.size());
  auto retry = retried_after.begin();
  for (const AttemptFacts& attempt : facts.attempts) {
    then.attempts.push_back(attempt);
    for (; retry != retried_after.end() && *retry < attempt.attempt.number; ++retry) {
      then.retried_after = *retry;
    }
    if (attempt.begun.sweep != sweep) continue;
    if (attempt.outcome == Outcome::finished) take(kTrialFinished, attempt);
    if (attempt.outcome == Outcome::stalled) take(kTrialStalled, attempt);
    // A failure remains an event even after the trial was retried.
    const bool last = &attempt == &facts.attempts.back();
    if (has_failed(then) || (failed && last)) take(kTrialFailed, attempt);
  }
}

std::vector<std::string> ids_of(const sweeps::Sweep& sweep) {
  std::vector<std::string> ids;
  ids.reserve(sweep.trials.size());
  for (const sweeps::SweepTrial& trial : sweep.trials) ids.push_back(trial.id.value);
  return ids;
}

// Summarizes a sweep for the event that all of its trials are over. The event's id changes with
// each trial's last attempt and state.
class WholeSweep {
 public:
  explicit WholeSweep(const sweeps::Sweep& sweep) : sweep_(sweep) {}

  void add(const TrialFacts& facts, std::optional<std::int64_t> retries) {
    const TrialState state = state_for_events(facts, sweep_.name, retries);
    const bool has_result = state == TrialState::done || state == TrialState::cached;
    if (has_result) ++done_;
    if (state == TrialState::failed) ++failed_;
    if (state == TrialState::cancelled) ++cancelled_;
    if (state == TrialState::stopped) ++stopped_;
    std::string line = facts.trial_id;
    line += has_result ? " done" : fmt::format(" {}", to_string(state));
    if (!facts.attempts.empty()) {
      line += " " + event_id("", facts.attempts.back());
      time_ = std::max(time_, facts.attempts.back().ended_at.value_or(0));
    }
    lines_.push_back(std::move(line));
  }
  bool is_over() const {
    return done_ + failed_ + cancelled_ + stopped_ ==
           static_cast<std::int64_t>(sweep_.trials.size());
  }
  std::string id() {
    std::sort(lines_.begin(), lines_.end());
    std::string text = fmt::format("{}\n{}", kSweepDone, sweep_.name);
    for (const std::string& line : lines_) text += "\n" + line;
    return event_id(text);
  }
  void describe(nlohmann::ordered_json& json) const {
    json["time"] = time_;
    json["sweep"] = sweep_.name;
    json["total"] = sweep_.trials.size();
    json["done"] = done_;
    json["failed"] = failed_;
    json["cancelled"] = cancelled_;
    json["stopped_early"] = stopped_;
  }

 private:
  const sweeps::Sweep& sweep_;
  std::vector<std::string> lines_;
  std::int64_t done_ = 0;
  std::int64_t failed_ = 0;
  std::int64_t cancelled_ = 0;
  std::int64_t stopped_ = 0;
  double time_ = 0;  // the last end
};

protocol::RecordLine mark_of(const std::string& id) { return {{"v", 1}, {"delivered", id}}; }

}  // namespace

std::optional<std::uintmax_t> free_bytes(const std::filesystem::path& folder) {
  std::error_code unknown;
  const std::filesystem::space_info space = std::filesystem::space(folder, unknown);
  if (unknown) return std::nullopt;
  return space.available;
}

EventHook::EventHook(boost::asio::io_context& io, const results::Store& store,
                     const sweeps::Sweep& sweep, EventHookOptions options, RunObserver& observer)
    : store_(store),
      sweep_(sweep),
      options_(std::move(options)),
      observer_(observer),
      marks_(protocol::delivered_events_file(options_.runs, sweep.name)),
      delivery_(
          io, options_.command, [this](const std::string& id) { keep_mark(id); },
          [this](const std::string& line) { note(line); }) {
  base::remove_abandoned_writes(marks_);
  if (!std::filesystem::exists(marks_)) start_from_here();
  read_delivered();
}

void EventHook::status(const RunStatus& status) {
  observer_.status(status);
  look(kPlannedAtOnce);
  look_at_disks();
}

void EventHook::trial_over(const std::string& trial_id, TrialState state, const std::string& reason,
                           const std::string& last_lines) {
  observer_.trial_over(trial_id, state, reason, last_lines);
}

void EventHook::each_trial(const std::vector<std::string>& ids,
                           const std::function<void(const TrialFacts&)>& take) const {
  const std::span<const std::string> all(ids);
  for (std::size_t at = 0; at < all.size(); at += kPlannedAtOnce) {
    const auto part = all.subspan(at, std::min(kPlannedAtOnce, all.size() - at));
    for (const TrialFacts& facts : store_.read().trial_facts(part)) take(facts);
  }
}

void EventHook::start_from_here() {
  std::string text;
  const auto mark = [&](const std::string& id) { text += protocol::record_text(mark_of(id)); };
  WholeSweep whole(sweep_);
  each_trial(ids_of(sweep_), [&](const TrialFacts& facts) {
    whole.add(facts, options_.retries);
    each_event_of(facts, [&](std::string_view event, const AttemptFacts& attempt) {
      mark(event_id(event, attempt));
    });
  });
  if (whole.is_over()) mark(whole.id());
  // If another run has created the file by now, that run was the first.
  base::create_file_atomically(marks_, text);
}

void EventHook::each_event_of(
    const TrialFacts& facts,
    const std::function<void(std::string_view, const AttemptFacts&)>& take) const {
  std::vector<std::int64_t> retried_after;
  if (facts.retried_after > 0) retried_after = retries_of(store_.read(), facts.trial_id);
  each_event(facts, retried_after, sweep_.name, options_.retries, take);
}

void EventHook::read_delivered() {
  protocol::each_record(marks_, [this](const protocol::RecordLine& line) {
    known_.insert(line.at("delivered").get<std::string>());
  });
}

void EventHook::look(std::size_t most) {
  const std::size_t count = std::min(most, changed_.size());
  if (count == 0) return;
  const std::vector<std::string> ids(changed_.begin(), changed_.begin() + count);
  changed_.erase(changed_.begin(), changed_.begin() + count);
  each_trial(ids, [this](const TrialFacts& facts) {
    each_event_of(facts, [this](std::string_view event, const AttemptFacts& attempt) {
      add(event, attempt);
    });
  });
}

void EventHook::look_at_disks() {
  const auto now = std::chrono::steady_clock::now();
  if (now < next_disks_) return;
  next_disks_ = now + options_.disk_interval;
  std::optional<std::uintmax_t> told;  // both folders may be on one disk
  for (const std::filesystem::path& folder : {options_.runs, options_.database.parent_path()}) {
    const std::optional<std::uintmax_t> free = options_.free_bytes(folder);
    bool& low = low_disks_[folder];
    if (!free || *free >= kEnoughDisk) low = false;
    if (!free || *free >= kLowDisk || std::exchange(low, true) || told == free) continue;
    add_low_disk(folder, *free);
    told = free;
  }
}

void EventHook::add_low_disk(const std::filesystem::path& folder, std::uintmax_t free) {
  const double time = wall_clock_seconds();
  const std::string host = this_host().host;
  std::string id = event_id(
      fmt::format("{}\n{}\n{}\n{}\n{:.6f}", kDiskLow, sweep_.name, host, folder.string(), time));
  protocol::RecordLine json = {{"v", 1}, {"id", id}, {"event", kDiskLow}, {"time", time}};
  json["sweep"] = sweep_.name;
  json["folder"] = folder.string();
  json["free_bytes"] = free;
  json["host"] = host;
  json["database"] = options_.database.string();
  json["runs"] = options_.runs.string();
  note(fmt::format("the disk with {} is low: {} MiB free", folder.string(), free >> 20));
  delivery_.add({std::move(id), fmt::format("{} of {}", kDiskLow, folder.string()),
                 protocol::record_text(json)});
}

void EventHook::add(std::string_view event, const AttemptFacts& attempt) {
  std::string id = event_id(event, attempt);
  if (!known_.insert(id).second) return;
  const std::string& trial = attempt.attempt.trial_id;
  protocol::RecordLine json = {{"v", 1}, {"id", id}, {"event", event}};
  protocol::put(json, "time", attempt.ended_at);
  json["sweep"] = sweep_.name;
  protocol::put(json, "variant",
                fmt::format("{}", fmt::join(store_.read().variants(sweep_.name, trial), ", ")));
  json["trial"] = trial;
  json["attempt"] = attempt.attempt.number;
  json["outcome"] = to_string(attempt.outcome);
  protocol::put(json, "reason", attempt.reason);
  protocol::put(json, "last_lines", attempt.log_tail);
  const bool moved = attempt.launch && !attempt.launch->host.empty();
  protocol::put(json, "host", moved ? attempt.launch->host : attempt.begun.host);
  protocol::put(json, "device", attempt.begun.device);
  json["database"] = options_.database.string();
  json["runs"] = options_.runs.string();
  delivery_.add(
      {std::move(id), fmt::format("{} of {}", event, trial), protocol::record_text(json)});
}

void EventHook::add_sweep_done() {
  if (sweep_.study && !sweep_.study->is_complete()) return;
  WholeSweep whole(sweep_);
  each_trial(ids_of(sweep_), [&](const TrialFacts& facts) { whole.add(facts, options_.retries); });
  if (!whole.is_over()) return;
  std::string id = whole.id();
  if (!known_.insert(id).second) return;
  protocol::RecordLine json = {{"v", 1}, {"id", id}, {"event", kSweepDone}};
  whole.describe(json);
  json["database"] = options_.database.string();
  json["runs"] = options_.runs.string();
  delivery_.add({std::move(id), fmt::format("{} of {}", kSweepDone, sweep_.name),
                 protocol::record_text(json)});
}

void EventHook::keep_mark(const std::string& id) {
  try {
    protocol::append_record(marks_, mark_of(id), false);
    marks_fail_ = false;
  } catch (const std::runtime_error& error) {
    if (!std::exchange(marks_fail_, true)) {
      note(fmt::format("{}; the next run delivers these events once more", error.what()));
    }
  }
}

void EventHook::finish(EventLoop& loop) {
  const EventLoop::Time deadline = loop.now() + options_.command.limit;
  read_delivered();  // includes events delivered by other runs
  while (waiting_ && !changed_.empty()) {
    look(kPlannedAtOnce);
    loop.poll();
  }
  if (waiting_) add_sweep_done();
  while (waiting_ && delivery_.is_busy() && loop.now() < deadline) loop.wait(deadline);
  const std::int64_t left = delivery_.left();
  if (left == 0) return;
  note(fmt::format("--on-event: {} event{} left for the next run with a command", left,
                   left == 1 ? " is" : "s are"));
}

}  // namespace petlab::orchestrator
