#include "orchestrator/planning/plan.h"

#include "protocol/events.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

using namespace petlab;
using namespace petlab::orchestrator;

TEST_CASE("A finished trial is stale for a worker of another numerics version, and only for it",
          "[orchestrator]") {
  // As petlab-trainer and docs/reference/worker-protocol.md write it.
  const std::string numerics =
      R"({"version":"1","device":"cpu","threads":1,"layout":"packed","gang":1})";
  CHECK(results::numerics_version(numerics) == "1");
  CHECK(results::numerics_version(R"({"version":2})") == "2");
  CHECK(results::numerics_version(R"({"device":"cpu"})").empty());
  CHECK(results::numerics_version("").empty());
  CHECK(results::numerics_version("[1]").empty());

  results::AttemptFacts attempt;
  attempt.attempt = {1, "0123456789abcdef", 1};
  attempt.outcome = results::Outcome::finished;
  attempt.started_at = 1;
  attempt.ended_at = 2;
  attempt.numerics = numerics;
  results::TrialFacts facts;
  facts.trial_id = attempt.attempt.trial_id;
  facts.known = true;
  facts.attempts = {attempt};
  facts.result_attempt = 1;
  PlanContext context;
  context.runs = "/nowhere";
  const sweeps::TrialConfig config;
  context.numerics = "1";
  CHECK(plan_trial(config, facts, context).state == sweeps::TrialState::done);
  context.numerics = "";
  CHECK(plan_trial(config, facts, context).state == sweeps::TrialState::done);
  context.numerics = "2";
  const TrialPlan plan = plan_trial(config, facts, context);
  CHECK(plan.state == sweeps::TrialState::stale);
  CHECK(plan.why.find("numerics version was 1, is 2 now") != std::string::npos);
}

TEST_CASE("A removed checkpoint is found in the attempt that kept it", "[orchestrator]") {
  const testing::TempDir folder;
  results::TrialFacts facts;
  facts.trial_id = "0123456789abcdef";
  facts.known = true;
  results::AttemptFacts attempt;
  attempt.outcome = results::Outcome::stopped;
  attempt.attempt = {1, facts.trial_id, 1};
  attempt.checkpoint = results::CheckpointAt{2, 5, "checkpoint/step-2.ckpt"};
  facts.attempts.push_back(attempt);
  attempt.attempt = {2, facts.trial_id, 2};
  attempt.checkpoint.reset();
  attempt.begun.resume = protocol::Resume{1, 2, 5, "resume/step-2.ckpt"};
  facts.attempts.push_back(attempt);
  PlanContext context;
  context.runs = folder.path();
  const auto resume = [&] { return plan_trial({}, facts, context).resume; };
  CHECK_FALSE(resume());
  folder.write("0123456789abcdef/2/resume/step-2.ckpt", "state");
  CHECK(resume() == protocol::Resume{1, 2, 5, "../2/resume/step-2.ckpt"});
  folder.write("0123456789abcdef/1/checkpoint/step-2.ckpt", "state");
  CHECK(resume() == protocol::Resume{1, 2, 5, "../1/checkpoint/step-2.ckpt"});
}

TEST_CASE("A checkpoint is not used again after a worker resumed from it and died without another",
          "[orchestrator]") {
  const testing::TempDir folder;
  folder.write("0123456789abcdef/1/checkpoint/step-2.ckpt", "state");
  folder.write("0123456789abcdef/2/checkpoint/step-4.ckpt", "state");
  results::TrialFacts facts;
  facts.trial_id = "0123456789abcdef";
  facts.known = true;
  facts.attempts.resize(2);
  results::AttemptFacts& first = facts.attempts.front();
  first.outcome = results::Outcome::stopped;
  first.attempt = {1, facts.trial_id, 1};
  first.checkpoint = results::CheckpointAt{2, 5, "checkpoint/step-2.ckpt"};
  results::AttemptFacts& second = facts.attempts.back();
  second.attempt = {2, facts.trial_id, 2};
  second.begun.resume = protocol::Resume{1, 2, 5, "../1/checkpoint/step-2.ckpt"};
  PlanContext context;
  context.runs = folder.path();
  const auto resume = [&](results::Outcome outcome) {
    second.outcome = outcome;
    return plan_trial({}, facts, context).resume;
  };
  CHECK_FALSE(resume(results::Outcome::crashed));
  CHECK_FALSE(resume(results::Outcome::stalled));
  CHECK(resume(results::Outcome::stopped) == second.begun.resume);
  second.checkpoint = results::CheckpointAt{4, 9, "checkpoint/step-4.ckpt"};
  CHECK(resume(results::Outcome::crashed) ==
        protocol::Resume{2, 4, 9, "../2/checkpoint/step-4.ckpt"});
}

namespace {

// A trial whose first attempt wrote checkpoints, and whose attempts all crash.
class CrashingTrial {
 public:
  // `files`: the names of the first attempt's checkpoints in checkpoint/, one a step; they exist.
  explicit CrashingTrial(const std::vector<std::string>& files) {
    facts_.trial_id = "0123456789abcdef";
    facts_.known = true;
    context_.runs = folder_.path();
    context_.retries = 9;
    std::string events;
    const auto add = [&](std::int64_t seq, decltype(protocol::Event::body) body) {
      events += protocol::to_line({seq, 1000, std::move(body)}) + "\n";
    };
    add(0, protocol::Started{7, "w", "1", R"({"version":"1"})", "b", {}});
    for (std::int64_t step = 1; step <= std::ssize(files); ++step) {
      const std::string path = "checkpoint/" + files[static_cast<std::size_t>(step - 1)];
      add(2 * step - 1, protocol::Progress{step, 9, 0.5});
      add(2 * step, protocol::Checkpoint{step, path});
      folder_.write(facts_.trial_id + "/1/" + path, "state");
      last_ = {step, 2 * step, path};
    }
    folder_.write(facts_.trial_id + "/1/events.jsonl", events);
  }

  // Adds an attempt that resumed from `resume` and crashed. Returns where the next one resumes.
  std::optional<protocol::Resume> resume_after_crash_of(
      const std::optional<protocol::Resume>& resume) {
    results::AttemptFacts attempt;
    attempt.outcome = results::Outcome::crashed;
    attempt.attempt = {0, facts_.trial_id, std::ssize(facts_.attempts) + 1};
    attempt.begun.resume = resume;
    if (facts_.attempts.empty()) attempt.checkpoint = last_;
    facts_.attempts.push_back(attempt);
    return plan_trial({}, facts_, context_).resume;
  }

  void remove(const std::string& file) { std::filesystem::remove(checkpoint(file)); }
  std::filesystem::path link_to_itself(const std::string& file) {
    std::filesystem::create_symlink(checkpoint(file), checkpoint(file));
    return checkpoint(file);
  }

 private:
  std::filesystem::path checkpoint(const std::string& file) const {
    return folder_.path() / facts_.trial_id / "1/checkpoint" / file;
  }

  const testing::TempDir folder_;
  results::TrialFacts facts_;
  PlanContext context_;
  results::CheckpointAt last_;
};

}  // namespace

TEST_CASE(
    "After a crash of an attempt that resumed from the last checkpoint, the one before is used",
    "[orchestrator]") {
  CrashingTrial trial({"step-1.ckpt", "step-2.ckpt", "step-3.ckpt"});
  trial.remove("step-1.ckpt");
  const auto last = trial.resume_after_crash_of({});
  CHECK(last == protocol::Resume{1, 3, 6, "../1/checkpoint/step-3.ckpt"});
  const auto before = trial.resume_after_crash_of(last);
  CHECK(before == protocol::Resume{1, 2, 4, "../1/checkpoint/step-2.ckpt"});
  CHECK_FALSE(trial.resume_after_crash_of(before));
  // Another crash does not make them usable again.
  CHECK_FALSE(trial.resume_after_crash_of({}));
}

TEST_CASE("The checkpoint before is used if the file of the last is missing", "[orchestrator]") {
  CrashingTrial trial({"step-1.ckpt", "step-2.ckpt"});
  trial.remove("step-2.ckpt");
  CHECK(trial.resume_after_crash_of({}) ==
        protocol::Resume{1, 1, 2, "../1/checkpoint/step-1.ckpt"});
}

TEST_CASE("A checkpoint whose file cannot be examined is not treated as missing",
          "[orchestrator]") {
  CrashingTrial trial({"step-1.ckpt", "step-2.ckpt"});
  trial.remove("step-2.ckpt");
  const std::filesystem::path file = trial.link_to_itself("step-2.ckpt");
  CHECK_THROWS_WITH(trial.resume_after_crash_of({}),
                    file.string() + ": cannot be read: Too many levels of symbolic links");
}

TEST_CASE("A checkpoint whose file was overwritten by a later one is never used",
          "[orchestrator]") {
  CrashingTrial one({"last.ckpt", "last.ckpt"});
  const auto last = one.resume_after_crash_of({});
  CHECK(last == protocol::Resume{1, 2, 4, "../1/checkpoint/last.ckpt"});
  CHECK_FALSE(one.resume_after_crash_of(last));
  CrashingTrial two({"a.ckpt", "b.ckpt", "b.ckpt"});
  CHECK(two.resume_after_crash_of(two.resume_after_crash_of({})) ==
        protocol::Resume{1, 1, 2, "../1/checkpoint/a.ckpt"});
}

TEST_CASE("A trial whose worker crashes is retried as often as --retries allows",
          "[orchestrator]") {
  results::TrialFacts facts;
  facts.trial_id = "0123456789abcdef";
  facts.known = true;
  PlanContext context;
  context.runs = "/nowhere";
  context.retries = 2;
  const auto after_another = [&](results::Outcome outcome) {
    results::AttemptFacts attempt;
    attempt.outcome = outcome;
    attempt.attempt.number = static_cast<std::int64_t>(facts.attempts.size()) + 1;
    attempt.attempt.trial_id = facts.trial_id;
    facts.attempts.push_back(attempt);
    return plan_trial({}, facts, context).state;
  };
  CHECK(after_another(results::Outcome::crashed) == sweeps::TrialState::interrupted);
  CHECK(after_another(results::Outcome::stopped) == sweeps::TrialState::interrupted);
  CHECK(after_another(results::Outcome::stalled) == sweeps::TrialState::interrupted);
  CHECK(after_another(results::Outcome::crashed) == sweeps::TrialState::failed);
  facts.attempts.clear();
  context.retries = 0;
  CHECK(after_another(results::Outcome::crashed) == sweeps::TrialState::failed);
}
