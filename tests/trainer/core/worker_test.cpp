#include "trainer/worker/worker.h"

#include <map>
#include <nlohmann/json.hpp>

#include "tests/support/programs.h"
#include "tests/support/skip.h"
#include "tests/trainer/core/train_attempt.h"
#include "trainer/artifact/module_artifact.h"
#include "trainer/compute/devices.h"
#include "trainer/compute/products.h"
#include "trainer/compute/tensors.h"
#include "trainer/files/safetensors.h"

using namespace petlab;
using namespace petlab::trainer;
using petlab::testing::events_of;
using petlab::testing::read_events;
using petlab::testing::Run;
using petlab::testing::TinyWorld;
using petlab::testing::train;

namespace {

struct Variant {
  const char* kind;
  bool share;
  metrics::MaskKind mask;
  const char* backbone = "tiny";
};

protocol::TrialFile trial_of(const TinyWorld& world, const Variant& variant) {
  protocol::TrialFile trial = world.trial(variant.kind);
  trial.config.module.share = variant.share;
  trial.config.module.mask = variant.mask;
  trial.config.backbone = std::string("./") + variant.backbone;
  trial.backbone_folder = world.folder.path() / variant.backbone;
  return trial;
}

using metrics::MaskKind;

/// Three attempts of adapters that fit one gang; the second has `epochs` of its own, if not 0.
std::vector<std::filesystem::path> three_attempts(const TinyWorld& world, std::int64_t epochs = 0) {
  std::vector<std::filesystem::path> folders;
  for (const std::uint64_t seed : {1, 2, 3}) {
    protocol::TrialFile trial = world.trial("adapter");
    trial.trial_id = "trial-" + std::to_string(seed);
    trial.config.seed = {seed};
    if (seed == 2 && epochs > 0) trial.config.training.epochs = epochs;
    folders.push_back(world.attempt("runs", trial));
  }
  return folders;
}

}  // namespace

TEST_CASE("the trainer has the catalog's modules in its order", "[trainer]") {
  std::vector<std::string> catalog;
  for (const sweeps::ModuleRow& row : sweeps::modules()) catalog.emplace_back(row.kind);
  std::vector<std::string> trainer;
  for (const ModuleKind& row : module_kinds()) trainer.emplace_back(row.kind);
  CHECK(trainer == catalog);
}

TEST_CASE("a trial has the same losses, metrics and artifact when it is rerun or resumed",
          "[trainer]") {
  const TinyWorld world;
  const Variant variant = GENERATE(
      Variant{"adapter", true, MaskKind::learned}, Variant{"adapter", false, MaskKind::learned},
      Variant{"adapter", true, MaskKind::random}, Variant{"adapter", false, MaskKind::none},
      Variant{"adapter", true, MaskKind::none}, Variant{"lora", true, MaskKind::learned},
      Variant{"prefix", true, MaskKind::learned}, Variant{"prefix", false, MaskKind::none},
      Variant{"full_finetuning", false, MaskKind::none},
      Variant{"head_only", false, MaskKind::none},
      Variant{"adapter", true, MaskKind::learned, "tiny-modernbert"},
      Variant{"lora", false, MaskKind::none, "tiny-modernbert"},
      Variant{"prefix", true, MaskKind::learned, "tiny-modernbert"},
      Variant{"full_finetuning", false, MaskKind::none, "tiny-modernbert"});
  INFO(variant.backbone << ", " << variant.kind << ", share " << variant.share << ", mask "
                        << metrics::to_string(variant.mask));
  const protocol::TrialFile trial = trial_of(world, variant);
  const Run whole = train(world.attempt("whole", trial));
  INFO(whole.log);
  REQUIRE(whole.outcome == TrialOutcome::finished);
  CHECK(whole.losses.size() == 12);  // 3 epochs of 4 batches, the last of them smaller
  const auto finished = events_of<protocol::Finished>(whole.events);
  REQUIRE(finished.size() == 1);
  const auto& started = std::get<protocol::Started>(whole.events.front().body);
  CHECK(started.numerics == std::string(R"({"version":")") + kNumerics +
                                R"(","device":"cpu","threads":1,"layout":"packed","gang":1})");
  // This key decides which results are stale.
  CHECK(nlohmann::json::parse(started.numerics).at("version") ==
        nlohmann::json::parse(describe_worker()).at("numerics"));
  CHECK(std::holds_alternative<protocol::Finished>(whole.events.back().body));
  if (finished[0].bls_bits) {
    CHECK(static_cast<double>(*finished[0].stored_bits) == *finished[0].bls_bits);
  }

  // Stops inside an epoch, or between an epoch's last step and its validation.
  const std::int64_t stop_after = GENERATE(2, 4);
  const auto first = world.attempt("stopped", trial, 1);
  const Run stopped = train(first, stop_after);
  CHECK(stopped.outcome == TrialOutcome::interrupted);
  const auto* const last = std::get_if<protocol::Checkpoint>(&stopped.events.back().body);
  REQUIRE(last != nullptr);
  CHECK(last->step == stop_after);
  protocol::TrialFile again = trial;
  again.resume = protocol::Resume{1, last->step, stopped.events.back().seq, "../1/" + last->path};
  const auto second = world.attempt("stopped", again, 2);
  const Run resumed = train(second);
  INFO(resumed.log);
  REQUIRE(resumed.outcome == TrialOutcome::finished);
  std::map<std::int64_t, double> losses = stopped.losses;
  losses.insert(resumed.losses.begin(), resumed.losses.end());
  CHECK((losses == whole.losses));
  auto metrics = events_of<protocol::Metric>(stopped.events);
  for (const protocol::Metric& metric : events_of<protocol::Metric>(resumed.events)) {
    metrics.push_back(metric);
  }
  // In parentheses: Catch would print the vectors with LibTorch's operator<<, which fails.
  CHECK((metrics == events_of<protocol::Metric>(whole.events)));
  CHECK(testing::read_file(second / "artifact.petl") ==
        testing::read_file(
            protocol::TrialDirectory(world.folder.path() / "whole", trial.trial_id, 1).artifact()));
}

TEST_CASE("an artifact alone gives its trial's test metrics", "[trainer]") {
  const TinyWorld world;
  const Variant variant = GENERATE(
      Variant{"adapter", true, MaskKind::learned}, Variant{"adapter", false, MaskKind::learned},
      Variant{"adapter", true, MaskKind::random}, Variant{"lora", false, MaskKind::none},
      Variant{"prefix", true, MaskKind::learned}, Variant{"full_finetuning", false, MaskKind::none},
      Variant{"lora", false, MaskKind::none, "tiny-modernbert"});
  const protocol::TrialFile trial = trial_of(world, variant);
  const auto attempt = world.attempt("runs", trial);
  const Run run = train(attempt);
  REQUIRE(run.outcome == TrialOutcome::finished);
  std::vector<std::pair<std::string, std::optional<double>>> wanted;
  for (const protocol::Metric& metric : events_of<protocol::Metric>(run.events)) {
    if (metric.split == "test") wanted.emplace_back(metric.name, metric.value);
  }
  BackboneStore backbones;
  const auto backbone = backbones.get(trial.backbone_folder);
  const Artifact artifact = read_artifact(attempt / "artifact.petl");
  TrialModel model = load_model(artifact, trial.config, trial.tasks, *backbone->model);
  model.merge(0);
  const std::vector<TaskRun> tasks =
      load_tasks(trial.tasks, trial.config.data, trial.data_folders, *backbone);
  const std::atomic<bool> stop{false};
  const Predictions predictions = predict(model, 0, tasks[0].test, stop);
  CHECK((model.objective(0).score(tasks[0].test, predictions).metrics == wanted));
}

TEST_CASE(
    "a trial in bfloat16 records the type and gives the same numbers again and from its artifact",
    "[trainer]") {
  const TinyWorld world;
  protocol::TrialFile trial =
      trial_of(world, {GENERATE("adapter", "full_finetuning"), false, MaskKind::none});
  trial.config.training.compute = sweeps::ComputeType::bf16;
  ::setenv(kEmulateVariable, "1", 1);
  const auto attempt = world.attempt("one", trial);
  const Run one = train(attempt);
  const Run two = train(world.attempt("two", trial));
  const Placement placement =
      placement_for(trial.config.training, "cpu", sweeps::process_environment());
  ::unsetenv(kEmulateVariable);
  REQUIRE(one.outcome == TrialOutcome::finished);
  CHECK((one.losses == two.losses));
  CHECK((events_of<protocol::Metric>(one.events) == events_of<protocol::Metric>(two.events)));
  const auto numerics =
      nlohmann::json::parse(std::get<protocol::Started>(one.events.front().body).numerics);
  CHECK(numerics.at("compute") == "bf16");
  CHECK(numerics.contains("emulated") == !multiplies_bf16());
  protocol::TrialFile exact = trial;
  exact.config.training.compute = sweeps::ComputeType::float32;
  const Run in_float32 = train(world.attempt("three", exact));
  CHECK((in_float32.losses != one.losses));
  CHECK(in_float32.losses.begin()->second == Approx(one.losses.begin()->second).epsilon(1e-2));
  std::vector<std::pair<std::string, std::optional<double>>> wanted;
  for (const protocol::Metric& metric : events_of<protocol::Metric>(one.events)) {
    if (metric.split == "test") wanted.emplace_back(metric.name, metric.value);
  }
  BackboneStore backbones;
  const auto backbone = backbones.get(trial.backbone_folder, placement);
  TrialModel model = load_model(read_artifact(attempt / "artifact.petl"), trial.config, trial.tasks,
                                *backbone->model);
  model.merge(0);
  const std::vector<TaskRun> tasks =
      load_tasks(trial.tasks, trial.config.data, trial.data_folders, *backbone);
  const Predictions predictions = predict(model, 0, tasks[0].test, std::atomic<bool>{false});
  CHECK((model.objective(0).score(tasks[0].test, predictions).metrics == wanted));
}

TEST_CASE("gradient accumulation gives the gradients of the whole batch", "[trainer]") {
  const TinyWorld world;
  protocol::TrialFile trial = trial_of(world, {"adapter", true, MaskKind::learned});
  trial.config.training.epochs = 1;
  const Run whole = train(world.attempt("whole", trial));
  trial.config.training.gradient_accumulation = 3;
  const Run parts = train(world.attempt("parts", trial));
  REQUIRE(parts.losses.size() == whole.losses.size());
  for (const auto& [step, loss] : whole.losses) {
    CHECK(parts.losses.at(step) == Approx(loss).epsilon(1e-4));
  }
}

TEST_CASE("a trial whose loss explodes fails as not finite", "[trainer]") {
  const TinyWorld world;
  protocol::TrialFile trial = world.trial("full_finetuning");
  trial.config.training.learning_rate = 1e30;
  trial.config.training.max_grad_norm = 0;
  const Run run = train(world.attempt("runs", trial));
  CHECK(run.outcome == TrialOutcome::failed);
  const auto failed = events_of<protocol::Failed>(run.events);
  REQUIRE(failed.size() == 1);
  CHECK(failed[0].kind == "not_finite");
}

TEST_CASE("problems with a trial's files are reported in its events", "[trainer]") {
  const TinyWorld world;
  protocol::TrialFile trial = world.trial("adapter");
  SECTION("a missing backbone") {
    std::filesystem::remove(world.folder.path() / "tiny/model.safetensors");
  }
  SECTION("changed data") { trial.data_digests["tiny-task"] = "sha256:0"; }
  SECTION("a missing checkpoint") {
    trial.resume = protocol::Resume{1, 2, 3, "../1/checkpoint/step-2.ckpt"};
  }
  SECTION("a missing device") { trial.device = "cuda:0"; }
  const Run run = train(world.attempt("runs", trial));
  CHECK(run.outcome == TrialOutcome::failed);
  CHECK(std::holds_alternative<protocol::Started>(run.events.front().body));
  const auto failed = events_of<protocol::Failed>(run.events);
  REQUIRE(failed.size() == 1);
  CHECK(failed[0].kind == "error");
  CHECK(!failed[0].reason.empty());
}

TEST_CASE("a token or segment without a row in the backbone's tables fails before the first step",
          "[trainer]") {
  const TinyWorld world;
  protocol::TrialFile trial = world.trial("adapter");
  const std::string folder = trial.backbone_folder.string();
  const std::string vocab = testing::read_file(trial.backbone_folder / "vocab.txt");
  const std::string rows =
      ", must be below 14, the number of the embedding's rows (vocab_size in config.json)";
  std::string wanted;
  SECTION("an entry of the vocabulary, used or not") {
    world.folder.write("tiny/vocab.txt", vocab + "unused\n");
    wanted = folder + ": token 'unused' has id 14" + rows;
  }
  SECTION("a token around texts") {
    world.folder.write("tiny/vocab.txt", vocab + "[END]\n");
    world.folder.write("tiny/tokenizer_config.json", R"({"sep_token": "[END]"})");
    wanted = folder + ": token '[END]' has id 14" + rows;
  }
  const std::string added =
      R"({"added_tokens_decoder": {"20": {"content": "[NEW]", "special": true}}})";
  SECTION("an added token in a text") {
    world.folder.write("tiny/tokenizer_config.json", added);
    world.folder.write("data/dev.tsv", "label\tsentence\n1\ta film\n0\ta [NEW] film\n");
    wanted = "task tiny-task: in example 2, token '[NEW]' has id 20" + rows;
  }
  SECTION("an added token in no text") { world.folder.write("tiny/tokenizer_config.json", added); }
  SECTION("the second text of a pair") {
    std::string config = testing::read_file(trial.backbone_folder / "config.json");
    config.replace(config.find("\"type_vocab_size\": 2"), 20, "\"type_vocab_size\": 1");
    world.folder.write("tiny/config.json", config);
    const Tensor types = at::zeros({1, 16});
    std::vector<std::pair<std::string, TensorView>> tensors;
    const auto read = SafetensorsFile::open(trial.backbone_folder / "model.safetensors");
    for (const std::string& name : read.names()) {
      const bool is_types = name.find("token_type_embeddings") != std::string::npos;
      tensors.emplace_back(name, is_types ? to_view(types) : read.tensor(name));
    }
    write_safetensors(trial.backbone_folder / "other.safetensors", tensors);
    std::filesystem::rename(trial.backbone_folder / "other.safetensors",
                            trial.backbone_folder / "model.safetensors");
    for (const char* const name : {"data/train.tsv", "data/dev.tsv", "data/test.tsv"}) {
      world.folder.write(name, "label\tsentence\tother\n1\ta film\tgood\n0\ta film\tbad\n");
    }
    trial.tasks[0].layouts[0].text_columns = {"sentence", "other"};
    wanted =
        "task tiny-task: in example 1, token 'good' has segment id 1, must be below 1, the "
        "number of segments' rows (type_vocab_size in config.json)";
  }
  const Run run = train(world.attempt("runs", trial));
  const auto failed = events_of<protocol::Failed>(run.events);
  CHECK((failed.empty() ? "" : failed[0].reason) == wanted);
  CHECK(events_of<protocol::Progress>(run.events).empty() == !wanted.empty());
}

TEST_CASE("a worker starts no further trial after a device error or a request to stop",
          "[trainer]") {
  using Gang = std::vector<std::string>;
  struct Case {
    TrialOutcome of_b;
    bool stop_after_a;
    int exit_code;
    std::vector<Gang> trained;
  };
  const Gang a{"a"}, b{"b"}, cd{"c", "d"};
  for (const Case& one : {Case{TrialOutcome::finished, false, 0, {a, b, cd}},
                          Case{TrialOutcome::failed, false, 0, {a, b, cd}},
                          Case{TrialOutcome::interrupted, false, 3, {a, b}},
                          Case{TrialOutcome::device_failed, false, 1, {a, b}},
                          Case{TrialOutcome::finished, true, 3, {a}}}) {
    std::vector<Gang> gangs{cd, b, a};
    std::atomic<bool> stop{false};
    std::vector<Gang> trained;
    const int code = train_gangs(
        [&]() -> std::optional<std::vector<std::string>> {
          if (gangs.empty()) return std::nullopt;
          auto gang = gangs.back();
          gangs.pop_back();
          return gang;
        },
        [&](const Gang& gang) {
          trained.push_back(gang);
          stop = one.stop_after_a;
          return gang == b ? one.of_b : TrialOutcome::finished;
        },
        stop);
    CHECK(code == one.exit_code);
    CHECK((trained == one.trained));
  }
}

TEST_CASE("the trials of a line are trained together, each with events, checkpoints and artifact",
          "[trainer]") {
  const TinyWorld world;
  std::vector<protocol::TrialFile> trials;
  for (const char* const kind : {"adapter", "lora", "adapter", "full_finetuning", "head_only"}) {
    trials.push_back(world.trial(kind));
    trials.back().trial_id = "trial-" + std::to_string(trials.size());
    trials.back().config.seed = {40 + trials.size()};
  }
  trials[1].config.training.epochs = 1;
  trials[2].config.training.learning_rate = 1e30;
  trials[2].config.training.max_grad_norm = 0;
  trials[4].backbone_digest = "sha256:another";
  std::vector<std::filesystem::path> folders;
  for (const protocol::TrialFile& trial : trials) {
    folders.push_back(world.attempt("runs", trial));
  }
  BackboneStore backbones;
  std::ostringstream log;
  std::atomic<bool> stop{false};
  std::int64_t steps = 0;
  // Stops after the second trial has finished and the third has failed.
  const auto outcome = train_gang(
      folders, backbones, stop, [] { return 1.0; }, log,
      [&](std::int64_t, double) { stop = ++steps == 12; });
  INFO(log.str());
  CHECK(outcome == TrialOutcome::interrupted);
  const auto gang_of = [&](std::size_t k) {
    const auto started = events_of<protocol::Started>(read_events(folders[k]));
    REQUIRE(started.size() == 1);
    return nlohmann::json::parse(started[0].numerics).at("gang").get<int>();
  };
  for (const std::size_t k : {0U, 1U, 2U, 4U}) CHECK(gang_of(k) == 4);
  CHECK(events_of<protocol::Checkpoint>(read_events(folders[0])).size() >= 1);
  CHECK(events_of<protocol::Finished>(read_events(folders[1])).size() == 1);
  CHECK(std::filesystem::exists(folders[1] / "artifact.petl"));
  const auto failed = events_of<protocol::Failed>(read_events(folders[2]));
  REQUIRE(failed.size() == 1);
  CHECK(failed[0].kind == "not_finite");
  // Not begun: it shares no backbone with the others.
  CHECK(!std::filesystem::exists(folders[3] / "events.jsonl"));
  CHECK(events_of<protocol::Failed>(read_events(folders[4])).size() == 1);

  // The first resumes alone and ends with a solo trial's loss, up to rounding.
  const auto events = read_events(folders[0]);
  const auto last = events_of<protocol::Checkpoint>(events).back();
  protocol::TrialFile rest = trials[0];
  rest.resume = protocol::Resume{1, last.step, events.back().seq, "../1/" + last.path};
  const Run resumed = train(world.attempt("runs", rest, 2));
  REQUIRE(resumed.outcome == TrialOutcome::finished);
  rest.resume.reset();
  const Run alone = train(world.attempt("alone", rest));
  const auto losses = [](const Run& run) { return run.losses.rbegin()->second; };
  CHECK(losses(resumed) == Approx(losses(alone)).epsilon(1e-3));
}

TEST_CASE("a worker stops the trial that a file asks for, and trains the others", "[trainer]") {
  const TinyWorld world;
  const std::vector<std::filesystem::path> folders = three_attempts(world, 100000);
  BackboneStore backbones;
  std::ostringstream log;
  std::atomic<bool> stop{false};
  const auto outcome = train_gang(
      folders, backbones, stop, [] { return 1.0; }, log,
      [&](std::int64_t, double) { std::ofstream(folders[1] / "stop"); });
  INFO(log.str());
  CHECK(outcome == TrialOutcome::stopped);
  for (const std::size_t k : {0U, 2U}) {
    CHECK(std::holds_alternative<protocol::Finished>(read_events(folders[k]).back().body));
  }
  const auto events = read_events(folders[1]);
  REQUIRE(events.size() > 2);
  const auto* const stopped = std::get_if<protocol::Stopped>(&events.back().body);
  const auto* const saved = std::get_if<protocol::Checkpoint>(&events[events.size() - 2].body);
  REQUIRE((stopped != nullptr && saved != nullptr));
  CHECK((stopped->step > 0 && saved->step == stopped->step));
  CHECK(std::filesystem::exists(folders[1] / saved->path));
}

TEST_CASE("a failure of trials that are trained together is of kind gang, of the last one its own",
          "[trainer]") {
  const TinyWorld world;
  const std::vector<std::filesystem::path> folders = three_attempts(world);
  const auto kinds_of = [&](std::size_t trials) {
    std::vector<std::filesystem::path> some(folders.begin(), folders.begin() + trials);
    BackboneStore backbones;
    std::ostringstream log;
    std::atomic<bool> stop{false};
    const auto fail = [](std::int64_t step, double) {
      if (step == 2) throw std::runtime_error("a product failed");
    };
    CHECK(train_gang(
              some, backbones, stop, [] { return 1.0; }, log, fail) == TrialOutcome::failed);
    std::vector<std::string> kinds;
    for (const std::filesystem::path& folder : some) {
      const auto failed = events_of<protocol::Failed>(read_events(folder));
      REQUIRE(!failed.empty());
      kinds.push_back(failed.back().kind + ": " + failed.back().reason);
      std::filesystem::remove(folder / "events.jsonl");
    }
    return kinds;
  };
  CHECK(kinds_of(3) ==
        std::vector<std::string>(3, "gang: with 3 trials trained together: a product failed"));
  CHECK(kinds_of(1) == std::vector<std::string>{"error: a product failed"});
}

TEST_CASE("a worker whose GPU cannot be used exits without starting its other trials",
          "[trainer]") {
  if (why_not_on("cuda") == std::nullopt) return testing::skip("there is a GPU here");
  const TinyWorld world;
  protocol::TrialFile trial = world.trial("adapter");
  trial.device = "cuda";
  const auto one = world.attempt("one", trial);
  const auto two = world.attempt("two", trial);
  const auto ended =
      testing::run_command("printf '%s\\n' " + one.string() + " " + two.string() + " | " +
                           testing::program("petlab-trainer").string() + " -");
  CHECK(ended.exit_code == 1);
  const auto failed = events_of<protocol::Failed>(read_events(one));
  REQUIRE(failed.size() == 1);
  CHECK(failed[0].kind == "device");
  CHECK_THAT(failed[0].reason, Catch::StartsWith("device is 'cuda', which cannot be used here: "));
  CHECK(!std::filesystem::exists(two / "events.jsonl"));
}

TEST_CASE("predict refuses a device that cannot be used", "[trainer]") {
  const TinyWorld world;
  const auto attempt = world.attempt("runs", trial_of(world, {"adapter", true, MaskKind::none}));
  REQUIRE(train(attempt).outcome == TrialOutcome::finished);
  const auto predicted = [&](const std::string& device) {
    world.folder.write("texts.txt", "the film is good\n");
    return testing::run_command(testing::program("petlab-trainer").string() +
                                " predict --artifact " + (attempt / "artifact.petl").string() +
                                " --backbone " + (world.folder.path() / "tiny").string() +
                                " --input " + (world.folder.path() / "texts.txt").string() +
                                " --device " + device);
  };
  const auto on_cpu = predicted("cpu");
  INFO(on_cpu.err);
  CHECK(on_cpu.exit_code == 0);
  CHECK_THAT(on_cpu.out, Catch::StartsWith(R"({"label":)"));
  CHECK(predicted("tpu").exit_code == 2);
  if (why_not_on("cuda") == std::nullopt) return testing::skip("there is a GPU here");
  const auto on_gpu = predicted("cuda");
  CHECK(on_gpu.exit_code == 1);
  CHECK_THAT(on_gpu.err,
             Catch::StartsWith("petlab-trainer: device is 'cuda', which cannot be used here: "));
}

TEST_CASE("a failure with a very long reason is reported in the trial's events", "[trainer]") {
  const TinyWorld world;
  world.folder.write("data/train.tsv",
                     "label\tsentence\n" + std::string(2'000'000, 'x') + "\tthe film\n");
  const Run run = train(world.attempt("runs", world.trial("adapter")));
  CHECK(run.outcome == TrialOutcome::failed);
  const auto failed = events_of<protocol::Failed>(run.events);
  REQUIRE(failed.size() == 1);
  CHECK_THAT(failed[0].reason,
             Catch::StartsWith((world.folder.path() / "data/train.tsv:2: label 'xxx").string()));
  CHECK_THAT(failed[0].reason, Catch::EndsWith("x…' is not known, expected one of '0', '1'"));
  CHECK(run.log.size() < 10'000);
}

TEST_CASE("petlab-trainer describes itself, trains the attempts on standard input and tokenizes",
          "[trainer]") {
  const TinyWorld world;
  const auto program = testing::program("petlab-trainer").string();
  const auto described = testing::run_command(program + " --describe");
  CHECK(described.exit_code == 0);
  CHECK(described.out.find(R"("name":"petlab-trainer")") != std::string::npos);
  CHECK(described.out.find(R"("max_gpus":1)") != std::string::npos);

  protocol::TrialFile trial = trial_of(world, {"adapter", true, MaskKind::learned});
  trial.config.training.epochs = 1;
  const auto one = world.attempt("one", trial);
  const auto two = world.attempt("two", trial);
  // The last line has no newline.
  const auto trained = testing::run_command("printf '%s\\n%s' " + one.string() + " " +
                                            two.string() + " | " + program + " -");
  INFO(trained.err);
  CHECK(trained.exit_code == 0);
  CHECK(testing::read_file(one / "artifact.petl") == testing::read_file(two / "artifact.petl"));
  CHECK(events_of<protocol::Finished>(read_events(two)).size() == 1);

  const auto ids = testing::run_command("echo 'the film is good' | " + program +
                                        " tokenize --backbone " + trial.backbone_folder.string());
  CHECK(ids.out == "[2,10,7,9,5,3]\n");
  CHECK(testing::run_command(program).exit_code == 2);
}

TEST_CASE("a terminated worker writes a checkpoint and exits with 3", "[trainer]") {
  const TinyWorld world;
  protocol::TrialFile trial = world.trial("adapter");
  trial.config.training.epochs = 100000;
  const auto attempt = world.attempt("runs", trial);
  const auto ended =
      testing::run_command(testing::program("petlab-trainer").string() + " " + attempt.string() +
                           " > /dev/null & pid=$!; " + "while ! grep -q progress " +
                           (attempt / "events.jsonl").string() +
                           " 2> /dev/null; do sleep 0.05; done; kill -TERM $pid; wait $pid");
  CHECK(ended.exit_code == 3);
  const auto events = read_events(attempt);
  const auto* const last = std::get_if<protocol::Checkpoint>(&events.back().body);
  REQUIRE(last != nullptr);
  CHECK(std::filesystem::exists(attempt / last->path));
}
