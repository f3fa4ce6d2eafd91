// When slots whose workers are jobs of a queue take trials. No queue is needed.
#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "orchestrator/planning/schedule.h"
#include "orchestrator/running/worker_slot.h"
#include "tests/support/catch.h"

namespace petlab::orchestrator {
namespace {

using namespace std::chrono_literals;
const EventLoop::Time kStart = EventLoop::Time() + 1000h;

class Job final : public Worker {
 public:
  bool in_queue = true;
  results::Launch launched;
  std::optional<EventLoop::Time> ends;

  void submit(const std::vector<std::filesystem::path>&) override {}
  void close() override {}
  void log_to(const std::filesystem::path&) override {}
  std::string last_lines(const std::filesystem::path&) override { return {}; }
  void stop() override {}
  void kill() override {}
  const results::Launch& launch() const override { return launched; }
  bool waits() const override { return in_queue; }
  std::optional<EventLoop::Time> ends_by() const override { return ends; }
};

struct JobSlot {
  explicit JobSlot(bool takes_one = false, bool ahead = false)
      : slot("slurm-0", "", kStart - 1h, SlotKind{true, takes_one, ahead}) {}
  void begin() {
    auto worker = std::make_unique<Job>();
    job = worker.get();
    slot.serve(std::move(worker), "");
  }
  void give(EventLoop::Time now) {
    slot.give(live, now);
    slot.given.clear();  // over
  }
  bool takes_claims(EventLoop::Time now = kStart) const { return slot.takes_claims(schedule, now); }

  Schedule schedule{std::vector<ScheduledTrial>()};
  WorkerSlot slot;
  Job* job = nullptr;
  LiveAttempt live{protocol::TrialDirectory("/runs/t/1"), results::AttemptRef{0, "t", 1},
                   BestMetric(std::vector<const sweeps::TaskDeclaration*>()), AttemptState::given};
};

}  // namespace

TEST_CASE("A job takes trials once it has left the queue", "[orchestrator]") {
  JobSlot one;
  CHECK(one.slot.wants_job(kStart));
  CHECK_FALSE(one.takes_claims());
  one.begin();
  CHECK_FALSE(one.slot.wants_job(kStart));
  CHECK_FALSE(one.takes_claims());
  one.job->in_queue = false;
  CHECK(one.takes_claims());
  one.give(kStart);
  CHECK(one.takes_claims());
}

TEST_CASE("In a detached run, a job takes trials once Slurm has it", "[orchestrator]") {
  JobSlot one(false, true);
  CHECK_FALSE(one.takes_claims());
  one.begin();
  CHECK_FALSE(one.takes_claims());
  one.job->launched.job = "12_0";
  CHECK(one.takes_claims());
}

TEST_CASE("A job for one trial takes one", "[orchestrator]") {
  JobSlot one(true);
  one.begin();
  one.job->in_queue = false;
  CHECK(one.takes_claims());
  one.give(kStart);
  CHECK_FALSE(one.takes_claims());
}

TEST_CASE("A job takes no trial for which it has no time left, judged by those before",
          "[orchestrator]") {
  JobSlot one;
  one.begin();
  one.job->in_queue = false;
  one.job->ends = kStart + 1h;
  CHECK(one.takes_claims(kStart + 59min));
  // The hour that it waited in the queue before does not count.
  one.give(kStart);
  one.slot.pace.trial_ended();
  one.slot.pace.learn(kStart + 10min);
  CHECK(one.takes_claims(kStart + 49min));
  CHECK_FALSE(one.takes_claims(kStart + 51min));
  CHECK(one.slot.ends_too_soon(kStart + 51min));
  one.job->ends.reset();
  CHECK(one.takes_claims(kStart + 51min));
  // Otherwise, trials as long as the limit would make jobs that take none, one after the other.
  one.slot.report_end({Exited{0}, ""});
  one.slot.collect_end(false);
  one.begin();
  one.job->in_queue = false;
  one.job->ends = kStart + 1h;
  CHECK(one.takes_claims(kStart + 59min));
}

TEST_CASE("The end of a job without attempts counts as its launch's, unless it was closed",
          "[orchestrator]") {
  JobSlot one;
  one.begin();
  one.slot.report_end({Exited{1}, "no such file"});
  one.slot.collect_end(false);
  REQUIRE(one.slot.ended.size() == 1);
  CHECK_FALSE(one.slot.ended.front().served.given);
  CHECK(one.slot.ended.front().given.empty());
  CHECK_FALSE(one.slot.wants_job(kStart));  // until the end is concluded
  one.slot.ended.clear();
  CHECK(one.slot.wants_job(kStart));
  one.begin();
  one.slot.close(kStart);
  one.slot.report_end({Exited{0}, ""});
  one.slot.collect_end(false);
  CHECK(one.slot.ended.empty());
}

}  // namespace petlab::orchestrator
