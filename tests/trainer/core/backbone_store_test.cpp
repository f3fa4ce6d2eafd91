#include "trainer/training/backbone_store.h"

#include <nlohmann/json.hpp>

#include "sweeps/identity.h"
#include "tests/trainer/core/tiny_world.h"
#include "trainer/artifact/artifact.h"
#include "trainer/files/error.h"

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
  std::string reason;  // why the trial failed; empty if it did not
};

StoreRun train(const std::filesystem::path& attempt, BackboneStore& backbones,
               const std::function<void()>& at_first_step = nullptr) {
  StoreRun run;
  const std::atomic<bool> stop{false};
  std::ostringstream log;
  run.outcome = train_gang(
      {attempt}, backbones, stop, [] { return 1.0; }, log,
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

/// Changes one bit of the backbone's last tensor, in place or in a new file.
void change_weights(const TinyWorld& world, bool in_place) {
  const auto file = world.folder.path() / "tiny/model.safetensors";
  std::string bytes = testing::read_file(file);
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  if (!in_place) std::filesystem::remove(file);
  world.folder.write("tiny/model.safetensors", bytes);
}

}  // namespace

TEST_CASE("a cold and a warm worker refuse a trial whose backbone changed after planning",
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
                          "the sweep again to plan with the new ones)");
}

TEST_CASE("a worker with the old backbone in memory trains on the new one", "[trainer]") {
  const TinyWorld world;
  protocol::TrialFile trial = world.trial("full_finetuning");
  trial.config.training.epochs = 1;
  BackboneStore backbones;
  // Without a digest in trial.json, the artifact records the digest of the files.
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

TEST_CASE("a backbone that does not fit is freed before another backbone or type is loaded",
          "[trainer]") {
  const TinyWorld world;
  std::filesystem::copy(world.folder.path() / "tiny", world.folder.path() / "other");
  BackboneStore backbones({}, 0);
  const bool other_type = GENERATE(false, true);
  const std::weak_ptr<const LoadedBackbone> first = backbones.get(world.folder.path() / "tiny");
  REQUIRE(!first.expired());
  const auto second =
      other_type ? backbones.get(world.folder.path() / "tiny", Placement::all_in(at::kDouble))
                 : backbones.get(world.folder.path() / "other");
  CHECK(first.expired());
  CHECK(second->model->placement().compute == (other_type ? at::kDouble : at::kFloat));
}

TEST_CASE("the most recently used backbones and types are kept within the memory limit",
          "[trainer]") {
  const TinyWorld world;
  const auto tiny = world.folder.path() / "tiny";
  std::filesystem::copy(tiny, world.folder.path() / "other");
  std::int64_t bytes = 0;
  const auto loaded = BackboneStore().get(tiny);
  for (const auto& [name, weight] : loaded->model->weights()) {
    bytes += static_cast<std::int64_t>(weight.nbytes());
  }
  BackboneStore backbones({}, 2 * bytes);
  const Placement wide = Placement::all_in(at::kDouble);
  const std::weak_ptr<const LoadedBackbone> first = backbones.get(tiny);
  const std::weak_ptr<const LoadedBackbone> second = backbones.get(world.folder.path() / "other");
  CHECK(backbones.bytes_of_others() == bytes);
  const std::weak_ptr<const LoadedBackbone> third = backbones.get(tiny, wide);
  CHECK(backbones.bytes_of_others() == 2 * bytes);
  CHECK(backbones.get(tiny) == first.lock());
  // The doubles take twice as much, so the backbone used least recently has to go.
  CHECK(second.expired());
  CHECK(backbones.bytes_of_others() == 2 * bytes);
  CHECK(backbones.get(tiny, wide) == third.lock());
  CHECK(!first.expired());
}

TEST_CASE("data are read again only if their files changed", "[trainer]") {
  const TinyWorld world;
  protocol::TrialFile trial = world.trial("adapter");
  trial.config.training.epochs = 1;
  BackboneStore backbones;
  const StoreRun first = train(world.attempt("first", trial), backbones);
  REQUIRE(first.outcome == TrialOutcome::finished);
  // Changes the texts but not the file's size, inode or modification time.
  const auto file = world.folder.path() / "data/train.tsv";
  const auto written = std::filesystem::last_write_time(file);
  const std::string before = testing::read_file(file);
  std::string after = before;
  for (std::size_t at = 0; (at = after.find("film", at)) != std::string::npos;) {
    after.replace(at, 4, "plot");
  }
  REQUIRE(after != before);
  world.folder.write("data/train.tsv", after);
  std::filesystem::last_write_time(file, written);
  const StoreRun second = train(world.attempt("second", trial), backbones);
  CHECK(second.losses == first.losses);

  const auto cold_and_kept = [&](const char* name) {
    BackboneStore fresh;
    const StoreRun cold = train(world.attempt(std::string("cold") + name, trial), fresh);
    const StoreRun kept = train(world.attempt(std::string("kept") + name, trial), backbones);
    CHECK(cold.outcome == TrialOutcome::finished);
    CHECK(kept.losses == cold.losses);
    CHECK(kept.losses != first.losses);
  };
  trial.config.data.max_tokens = 8;
  cold_and_kept("shorter");
  trial.config.data.max_tokens = 128;
  trial.config.data.max_train_examples = 20;
  cold_and_kept("fewer");
  trial.config.data.max_train_examples = 0;
  world.folder.write("data/train.tsv", after + "1\tthe film is good\n");
  cold_and_kept("other data");
}

TEST_CASE("the most recently used tokenised data are kept within the memory limit", "[trainer]") {
  int loads = 0;
  const auto key = [](const std::string& task) { return DataStore::Key{task, {}, {}, {}}; };
  const auto tasks = [&] {
    ++loads;
    std::vector<TaskRun> runs(1);
    runs[0].train.ids.resize(250);  // 1,000 bytes
    return runs;
  };
  DataStore store(2000);
  const auto a = store.get(key("a"), tasks);
  store.get(key("b"), tasks);
  store.get(key("c"), tasks);
  CHECK(loads == 3);
  CHECK(store.bytes_of_others() == 2000);
  CHECK(store.get(key("a"), tasks) == a);
  CHECK(loads == 3);
  store.get(key("d"), tasks);  // replaces b
  store.get(key("a"), tasks);
  store.get(key("c"), tasks);
  CHECK(loads == 4);
  store.get(key("b"), tasks);
  CHECK(loads == 5);
  CHECK_THROWS(store.get(key("e"), []() -> std::vector<TaskRun> { throw Error("no file"); }));
  store.get(key("e"), tasks);
  CHECK(loads == 6);
  DataStore none(0);
  none.get(key("a"), tasks);
  CHECK(none.bytes_of_others() == 0);
  none.get(key("b"), tasks);
  CHECK(none.bytes_of_others() == 0);
}

TEST_CASE("the same backbone is loaded once", "[trainer]") {
  const TinyWorld world;
  BackboneStore backbones;
  const auto first = backbones.get(world.folder.path() / "tiny");
  CHECK(backbones.get(world.folder.path() / "tiny") == first);
  CHECK(backbones.get(world.folder.path() / "data/../tiny") == first);
  // A new modification time alone must not reload it.
  std::filesystem::last_write_time(world.folder.path() / "tiny/config.json",
                                   std::filesystem::file_time_type::clock::now());
  CHECK(backbones.get(world.folder.path() / "tiny") == first);
}
