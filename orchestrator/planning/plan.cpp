#include "orchestrator/planning/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "orchestrator/host/error.h"
#include "orchestrator/recovery/checkpoints.h"
#include "results/trial_state.h"
#include "sweeps/error.h"
#include "sweeps/identity.h"

namespace petlab::orchestrator {
namespace {

using results::AttemptFacts;
using results::Outcome;
using sweeps::TrialState;

// Describes what has changed since an attempt; empty if no change is known.
std::string difference(const AttemptFacts& attempt, const PlanContext& context) {
  const std::string then = results::numerics_version(attempt.numerics);
  if (!context.numerics.empty() && !then.empty() && then != context.numerics) {
    return fmt::format("numerics version was {}, is {} now", then, context.numerics);
  }
  for (const auto& [task, digest] : attempt.data_digests) {
    const auto now = context.data_digests.find(task);
    if (now != context.data_digests.end() && !now->second.empty() && !digest.empty() &&
        now->second != digest) {
      return fmt::format("the data of {} changed since", task);
    }
  }
  return {};
}

// Returns the file of an attempt's checkpoint: the original, or the copy that a later attempt kept
// when it resumed from it. The path is relative to the directory of any attempt; empty if there is
// no file.
std::string file_of_checkpoint(const results::TrialFacts& facts, std::int64_t attempt,
                               const results::CheckpointAt& checkpoint,
                               const PlanContext& context) {
  const auto existing_file = [&](std::int64_t number, const std::string& path) -> std::string {
    const protocol::TrialDirectory directory(context.runs, facts.trial_id, number);
    std::error_code error;
    const std::filesystem::path file = directory.folder() / path;
    const std::filesystem::file_status status = std::filesystem::status(file, error);
    // If it were considered missing, its progress would be lost.
    if (status.type() == std::filesystem::file_type::none) {
      throw Error(fmt::format("{}: cannot be read: {}", file.string(), error.message()));
    }
    if (!std::filesystem::is_regular_file(status)) return {};
    return fmt::format("../{}/{}", number, path);
  };
  std::string file = existing_file(attempt, checkpoint.path);
  for (auto later = facts.attempts.rbegin(); file.empty() && later != facts.attempts.rend();
       ++later) {
    const auto& resume = later->begun.resume;
    if (!resume || resume->attempt != attempt || resume->seq != checkpoint.seq) continue;
    file = existing_file(later->attempt.number, resume->checkpoint);
  }
  return file;
}

// True if an attempt that resumed from the checkpoint crashed before it wrote another: the
// checkpoint itself may be the cause.
bool is_suspect(const results::TrialFacts& facts, std::int64_t attempt,
                const results::CheckpointAt& checkpoint) {
  return std::any_of(facts.attempts.begin(), facts.attempts.end(), [&](const AttemptFacts& later) {
    const auto& resume = later.begun.resume;
    const bool died = later.outcome == Outcome::crashed || later.outcome == Outcome::stalled;
    return died && !later.checkpoint && resume && resume->attempt == attempt &&
           resume->seq == checkpoint.seq;
  });
}

// Finds the newest checkpoint that exists and is not suspect. Workers keep two of each attempt, so
// that one bad checkpoint does not cost all progress.
std::optional<protocol::Resume> find_resume(const results::TrialFacts& facts,
                                            const PlanContext& context) {
  for (auto attempt = facts.attempts.rbegin(); attempt != facts.attempts.rend(); ++attempt) {
    if (attempt->outcome == Outcome::finished || is_final_failure(*attempt)) break;
    if (!attempt->checkpoint || !difference(*attempt, context).empty()) continue;
    const std::int64_t number = attempt->attempt.number;
    const auto from =
        [&](const results::CheckpointAt& checkpoint) -> std::optional<protocol::Resume> {
      if (is_suspect(facts, number, checkpoint)) return std::nullopt;
      const std::string file = file_of_checkpoint(facts, number, checkpoint, context);
      if (file.empty()) return std::nullopt;
      return protocol::Resume{number, checkpoint.step, checkpoint.seq, file};
    };
    if (const auto resume = from(*attempt->checkpoint)) return resume;
    const protocol::TrialDirectory directory(context.runs, facts.trial_id, number);
    const auto before = checkpoint_before(*attempt->checkpoint, directory.events());
    if (!before) continue;
    if (const auto resume = from(*before)) return resume;
  }
  return std::nullopt;
}

bool files_are_gone(const AttemptFacts& attempt, const PlanContext& context) {
  const protocol::TrialDirectory directory(context.runs, attempt.attempt.trial_id,
                                           attempt.attempt.number);
  std::error_code error;
  return !std::filesystem::exists(directory.folder(), error) && !error;
}

std::string last_end(const AttemptFacts& last) {
  std::string text = fmt::format(
      "attempt {} {}", last.attempt.number,
      last.outcome == Outcome::open ? "was interrupted" : std::string(to_string(last.outcome)));
  std::replace(text.begin(), text.end(), '_', ' ');
  if (!last.reason.empty()) text += ": " + last.reason;
  return text;
}

}  // namespace

TrialPlan plan_trial(const sweeps::TrialConfig&, const results::TrialFacts& facts,
                     const PlanContext& context) {
  TrialPlan plan;
  plan.planned_from = facts.changes;
  plan.retries = results::allowed_retries(facts, context.retries);
  if (facts.attempts.empty()) {
    plan.state = facts.cancelled ? TrialState::cancelled : TrialState::fresh;
    plan.why = facts.cancelled ? "cancelled before any attempt" : "never tried";
    return plan;
  }
  const AttemptFacts& last = facts.attempts.back();
  plan.latest = last.attempt.number;
  plan.last_lines = last.log_tail;
  plan.failures = results::counted_failures(facts);
  plan.is_to_be_alone = failed_with_its_gang(last);
  for (const AttemptFacts& attempt : facts.attempts) {
    plan.ran_out_of_memory = plan.ran_out_of_memory || ran_out_of_memory(attempt);
  }
  std::string changed;
  Liveness alive = Liveness::dead;
  results::StateContext state_context;
  state_context.sweep = context.sweep;
  state_context.retries = context.retries;
  state_context.alive = [&](const AttemptFacts& attempt) {
    alive = context.liveness(attempt);
    return alive != Liveness::dead;
  };
  state_context.outdated = [&](const AttemptFacts& attempt) {
    changed = difference(attempt, context);
    return !changed.empty();
  };
  const results::StateOfTrial found = results::state_of(facts, state_context);
  plan.state = found.state;
  switch (found.state) {
    case TrialState::fresh:
      break;  // impossible: the trial has attempts
    case TrialState::running:
      plan.why = fmt::format("attempt {} runs {}{}", last.attempt.number, where_it_runs(last),
                             alive == Liveness::unknown ? ", according to its last record" : "");
      break;
    case TrialState::stale:
    case TrialState::done:
    case TrialState::cached:
      plan.why = found.state == TrialState::stale
                     ? changed + " (--rerun stale reruns it)"
                     : fmt::format("finished in attempt {}", found.result->attempt.number);
      if (found.state == TrialState::cached) plan.why += " by sweep " + found.result->begun.sweep;
      plan.files_gone = files_are_gone(*found.result, context);
      if (plan.files_gone) plan.why += "; its files are missing";
      break;
    case TrialState::cancelled:
      plan.why = "cancelled after attempt " + std::to_string(last.attempt.number);
      break;
    case TrialState::stopped:
      plan.why = facts.stopped_early + " (--resume-stopped continues it)";
      break;
    case TrialState::failed: {
      plan.why = last_end(last);
      const bool final = is_final_failure(last) && last.attempt.number > facts.retried_after;
      if (!final) plan.why += fmt::format(" ({} of {} attempts)", plan.failures, plan.retries + 1);
      break;
    }
    case TrialState::interrupted:
      if (found.to_renew && last.outcome == Outcome::finished) {
        plan.why =
            results::is_to_renew(facts)
                ? fmt::format("rerunning; attempt {} has the current result", *facts.result_attempt)
                : "stale; rerunning";
        break;
      }
      if (last.outcome == Outcome::finished) {
        plan.why =
            fmt::format("the result of attempt {} was discarded; restarts", last.attempt.number);
        break;
      }
      plan.resume = find_resume(facts, context);
      plan.why =
          last_end(last) + (plan.resume ? fmt::format("; resumes from step {} of attempt {}",
                                                      plan.resume->step, plan.resume->attempt)
                                        : std::string("; restarts"));
      break;
  }
  return plan;
}

bool is_work(TrialState state) {
  return state == TrialState::fresh || state == TrialState::interrupted;
}

std::map<std::string, std::string> known_data_digests(
    const std::map<std::string, sweeps::TaskDeclaration>& tasks,
    const std::vector<std::filesystem::path>& data_folders, const std::filesystem::path& cache) {
  std::map<std::string, std::string> digests;
  sweeps::FileDigests files(cache);
  for (const auto& [name, task] : tasks) {
    try {
      std::string digest = sweeps::data_digest(task, data_folders, files);
      if (!digest.empty()) digests[name] = std::move(digest);
    } catch (const sweeps::Error&) {
      // The worker reports missing data, since it may know another place.
    }
  }
  return digests;
}

std::int64_t finished_former_members(const results::Reader& reader, const sweeps::Sweep& sweep) {
  std::unordered_set<std::string_view> members;
  for (const sweeps::SweepTrial& trial : sweep.trials) members.insert(trial.id.value);
  const std::vector<std::string> finished = reader.finished_members(sweep.name);
  return std::count_if(finished.begin(), finished.end(),
                       [&](const std::string& id) { return !members.contains(id); });
}

std::string former_members_text(std::int64_t finished, const std::string& sweep) {
  if (finished == 0) return {};
  return fmt::format(
      "{} finished {} of earlier definitions of sweep {} {} no longer in it or in its tables; the "
      "view former_sweep_results has the values that {} reported",
      finished, finished == 1 ? "trial" : "trials", sweep, finished == 1 ? "is" : "are",
      finished == 1 ? "it" : "they");
}

}  // namespace petlab::orchestrator
