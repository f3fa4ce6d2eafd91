#include "orchestrator/planning/blame.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <variant>

namespace petlab::orchestrator {
namespace {

using results::Ending;
using results::Outcome;

std::string last_line(std::string_view text) {
  const std::size_t last = text.find_last_not_of('\n');
  if (last == std::string_view::npos) return {};
  text = text.substr(0, last + 1);
  const std::size_t begin = text.rfind('\n');
  return std::string(begin == std::string_view::npos ? text : text.substr(begin + 1));
}

std::string seconds_text(const std::optional<std::chrono::milliseconds>& limit) {
  return fmt::format(
      "{:.6g} s",
      std::chrono::duration<double>(limit.value_or(std::chrono::milliseconds(0))).count());
}

// How the worker ended, which is where the ending of each attempt starts from.
struct End {
  explicit End(const WorkerEnd& worker_end)
      : taken_away(std::holds_alternative<TakenAway>(worker_end.how)),
        out_of_time(std::holds_alternative<OutOfTime>(worker_end.how)),
        refused(std::holds_alternative<Refused>(worker_end.how)) {
    ending.reason = (by_queue() ? "" : "the worker ended with ") + to_string(worker_end);
    if (const auto* exited = std::get_if<Exited>(&worker_end.how)) ending.exit_code = exited->code;
    if (const auto* killed = std::get_if<Killed>(&worker_end.how)) ending.signal = killed->signal;
  }
  bool by_queue() const { return taken_away || out_of_time || refused; }

  bool taken_away;
  bool out_of_time;
  bool refused;
  Ending ending;
};

// The attempts that a worker had begun when it ended.
struct BegunTogether {
  std::size_t count = 0;
  bool over_limit = false;  // one of them was, so the run ended the worker
};

bool is_over_limit(const UnfinishedAttempt& attempt) {
  return attempt.verdict == Verdict::timed_out || attempt.verdict == Verdict::stalled;
}

// Sets the outcome and the reason, if the user or the rule of the sweep ended the attempt.
bool end_by_decision(Ending& ending, Verdict verdict) {
  if (verdict == Verdict::cancelled) {
    ending.outcome = Outcome::cancelled;
    ending.reason = kCancelledByUser;
  } else if (verdict == Verdict::stopped_early) {
    ending.outcome = Outcome::stopped;
    ending.reason = kStoppedEarly;
  }
  return verdict == Verdict::cancelled || verdict == Verdict::stopped_early;
}

// The ending of an attempt that the worker had begun. Sets `try_alone` if it had begun several and
// it is unknown which one ended the worker.
Ending ending_of_begun(const End& how, const WorkerEnd& end, const EndedWorkerFacts& worker,
                       const UnfinishedAttempt& attempt, const BegunTogether& begun,
                       bool& try_alone) {
  Ending ending = how.ending;
  ending.log_tail = end.last_lines;
  // Limits are meant for a trial alone. Which trial of a gang hangs, or slows the others, is
  // unknown.
  const bool to_judge_alone = (begun.count > 1 || attempt.in_gang) && begun.over_limit &&
                              (is_over_limit(attempt) || attempt.verdict == Verdict::none);
  if (to_judge_alone) {
    ending.outcome = Outcome::stopped;
    ending.reason =
        begun.count > 1
            ? fmt::format("over a limit with {} trials running: retrying each alone", begun.count)
            : "over a limit as the last trial of its gang: retrying it alone";
    try_alone = true;
    return ending;
  }
  switch (attempt.verdict) {
    case Verdict::timed_out:
      ending.outcome = Outcome::timed_out;
      ending.reason =
          fmt::format("ran longer than {} (--time-limit)", seconds_text(worker.time_limit));
      return ending;
    case Verdict::stalled:
      ending.outcome = Outcome::stalled;
      ending.reason = fmt::format("reported nothing for {} (--no-progress-limit)",
                                  seconds_text(worker.no_progress_limit));
      return ending;
    case Verdict::cancelled:
    case Verdict::stopped_early:
      end_by_decision(ending, attempt.verdict);
      return ending;
    case Verdict::none:
      break;
  }
  if (worker.asked_to_stop) {
    ending.outcome = Outcome::stopped;
    ending.reason = "asked to stop";
  } else if (how.taken_away || (how.out_of_time && (attempt.checkpointed || worker.any_over))) {
    // After other trials, this one had only a part of the job's time.
    ending.outcome = Outcome::stopped;
  } else if (how.out_of_time) {
    ending.outcome = Outcome::timed_out;
    ending.reason += " before a checkpoint";
  } else if (ending.exit_code == 3 && attempt.checkpointed) {
    ending.outcome = Outcome::stopped;
    ending.reason = "the worker was stopped by a signal";
  } else if (begun.count > 1) {
    ending.outcome = Outcome::stopped;
    ending.reason += fmt::format(" with {} trials running: retrying each alone", begun.count);
    try_alone = true;
  } else {
    ending.outcome = Outcome::crashed;
    if (!end.last_lines.empty()) ending.reason += ": " + last_line(end.last_lines);
  }
  return ending;
}

Ending ending_of_unbegun(const End& how, const UnfinishedAttempt& attempt) {
  Ending ending = how.ending;
  ending.outcome = Outcome::never_started;
  ending.reason += " before it started this trial";
  switch (attempt.verdict) {
    case Verdict::cancelled:
      ending.outcome = Outcome::cancelled;
      ending.reason = kCancelledByUser;
      break;
    case Verdict::stopped_early:
      ending.reason = kStoppedEarly;
      break;
    case Verdict::timed_out:
    case Verdict::stalled:
      ending.outcome = attempt.verdict == Verdict::stalled ? Outcome::stalled : Outcome::timed_out;
      ending.reason = "the worker never started it";
      break;
    case Verdict::none:
      if (how.out_of_time) ending.outcome = Outcome::timed_out;
      break;
  }
  return ending;
}

}  // namespace

Ending ending_of_stopped(Verdict verdict, bool asked) {
  Ending ending;
  if (end_by_decision(ending, verdict)) return ending;
  ending.outcome = asked ? Outcome::stopped : Outcome::crashed;
  ending.reason = asked ? "asked to stop" : "its worker stopped it, but petlab did not ask for it";
  return ending;
}

Blame blame_for(const WorkerEnd& end, const EndedWorkerFacts& worker,
                const std::vector<UnfinishedAttempt>& attempts) {
  const End how(end);
  BegunTogether begun;
  for (const UnfinishedAttempt& attempt : attempts) {
    begun.count += attempt.begun ? 1 : 0;
    begun.over_limit = begun.over_limit || (attempt.begun && is_over_limit(attempt));
  }
  const bool ended_by_run = worker.asked_to_stop ||
                            std::any_of(attempts.begin(), attempts.end(), [](const auto& attempt) {
                              return attempt.verdict != Verdict::none;
                            });
  Blame blame;
  for (std::size_t at = 0; at < attempts.size(); ++at) {
    bool try_alone = false;
    blame.endings.push_back(attempts[at].begun
                                ? ending_of_begun(how, end, worker, attempts[at], begun, try_alone)
                                : ending_of_unbegun(how, attempts[at]));
    if (try_alone) blame.to_try_alone.push_back(at);
  }
  const auto first_unbegun = std::find_if(attempts.begin(), attempts.end(),
                                          [](const auto& attempt) { return !attempt.begun; });
  const bool any_unbegun = first_unbegun != attempts.end();
  if (!ended_by_run && begun.count == 0 && any_unbegun && !how.by_queue()) {
    blame.never_begun = static_cast<std::size_t>(first_unbegun - attempts.begin());
  }
  const bool no_launch = any_unbegun || !worker.any_given;
  if (ended_by_run || worker.any_begun || !no_launch || how.out_of_time) return blame;
  blame.launch = how.refused      ? LaunchBlame::refused
                 : how.taken_away ? LaunchBlame::taken_away
                                  : LaunchBlame::failed;
  return blame;
}

AfterLaunchFailure after_launch_failure(const LaunchFailures& failures) {
  AfterLaunchFailure after;
  const std::int64_t of_run_that_stop =
      failures.queue ? kLaunchFailuresThatStop : kLaunchFailuresThatStop * failures.slots;
  after.stop_run = failures.of_run >= of_run_that_stop && !failures.any_trial_runs;
  after.stop_slot = !failures.queue && failures.of_slot >= kLaunchFailuresThatStop;
  return after;
}

}  // namespace petlab::orchestrator
