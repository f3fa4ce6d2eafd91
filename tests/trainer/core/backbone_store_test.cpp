#include "trainer/training/backbone_store.h"

#include <nlohmann/json.hpp>

#include "sweeps/identity.h"
#include "tests/trainer/core/tiny_world.h"
#include "trainer/artifact/artifact.h"

using namespace petlab;
using namespace petlab::trainer;
using petlab::testing::events_of;
using petlab::testing::read_events;
using petlab::testing::TinyWorld;

namespace {

struct StoreRun {
  TrialOutcome outcome = TrialOutcome::failed;
  std::vector<double> losses;
  protocol::Started started;
  std::string reason;  // of a failed trial
};

StoreRun train(const std::filesystem::path& attempt, BackboneStore& backbones,
               const std::function<void()>& at_first_step = nullptr) {
  StoreRun run;
  const std::atomic<bool> stop{false};
  std::ostringstream log;
  run.outcome = train_trial(
      attempt, backbones, stop, [] { return 1.0; }, log,
      [&](std::int64_t step, double loss) {
        run.losses.push_back(loss);
        if (step == 1 && at_first_step) at_first_step();
      });
  const auto events = read_events(attempt);
  run.started = std::get<protocol::Started>(events.front().body);
  for (const auto& failed : events_of<protocol::Failed>(events)) run.reason = failed.reason;
  return run;
}

std::string digest_of(const protocol::TrialFile& trial) {
  sweeps::FileDigests digests{{}};
  return sweeps::backbone_digest(trial.backbone_folder, digests);
}

/// Another number in the backbone's last tensor, in place or as a new file.
void change_weights(const TinyWorld& world, bool in_place) {
  const auto file = world.folder.path() / "tiny/model.safetensors";
  std::string bytes = testing::read_file(file);
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  if (!in_place) std::filesystem::remove(file);
  world.folder.write("tiny/model.safetensors", bytes);
}

}  // namespace

TEST_CASE(
    "a trial is refused on another backbone than it was planned with, by a cold worker and "
    "by one that has the old one in memory",
    "[trainer]") {
  const TinyWorld world;
  protocol::TrialFile trial = world.trial("adapter");
  trial.config.training.epochs = 1;
  trial.backbone_digest = digest_of(trial);
  BackboneStore backbones;
  const bool warm = GENERATE(false, true);
  const bool in_place = GENERATE(false, true);
  INFO("warm " << warm << ", in place " << in_place);
  if (warm) {
    const StoreRun first = train(world.attempt("first", trial), backbones);
    REQUIRE(first.outcome == TrialOutcome::finished);
    CHECK(first.started.backbone_digest == trial.backbone_digest);
  }
  change_weights(world, in_place);
  const std::string now = digest_of(trial);
  REQUIRE(now != trial.backbone_digest);
  const StoreRun run = train(world.attempt("runs", trial), backbones);
  CHECK(run.outcome == TrialOutcome::failed);
  CHECK(run.losses.empty());
  CHECK(run.started.backbone_digest == now);
  CHECK(run.reason == trial.backbone_folder.string() + ": the backbone's digest is " + now +
                          ", must be " + trial.backbone_digest +
                          " as in trial.json: the files changed since the trial was planned (run "
                          "the sweep again to plan with them as they are)");
}

TEST_CASE("a worker that has the old backbone in memory trains on the new one", "[trainer]") {
  const TinyWorld world;
  protocol::TrialFile trial = world.trial("full_finetuning");
  trial.config.training.epochs = 1;
  BackboneStore backbones;
  // trial.json may leave the digest out: then the artifact has what was found.
  const StoreRun before = train(world.attempt("before", trial), backbones);
  REQUIRE(before.outcome == TrialOutcome::finished);
  change_weights(world, GENERATE(false, true));
  trial.backbone_digest = digest_of(trial);
  CHECK(before.started.backbone_digest != trial.backbone_digest);
  const auto warm_attempt = world.attempt("warm", trial);
  const StoreRun warm = train(warm_attempt, backbones);
  BackboneStore fresh;
  const StoreRun cold = train(world.attempt("cold", trial), fresh);
  REQUIRE(warm.outcome == TrialOutcome::finished);
  CHECK(warm.losses == cold.losses);
  CHECK(warm.losses != before.losses);
  CHECK(read_artifact(warm_attempt / "artifact.petl").backbone_digest == trial.backbone_digest);
}

TEST_CASE("the same backbone is loaded once", "[trainer]") {
  const TinyWorld world;
  BackboneStore backbones;
  const auto first = backbones.get(world.folder.path() / "tiny");
  CHECK(backbones.get(world.folder.path() / "tiny") == first);
  CHECK(backbones.get(world.folder.path() / "data/../tiny") == first);
  // A new time alone changes no content.
  std::filesystem::last_write_time(world.folder.path() / "tiny/config.json",
                                   std::filesystem::file_time_type::clock::now());
  CHECK(backbones.get(world.folder.path() / "tiny") == first);
}
