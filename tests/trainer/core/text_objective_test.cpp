// Trials of a T5: targets, losses, generated texts, and training in a worker.
#include "trainer/training/text_objective.h"

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "metrics/metric_table.h"
#include "tests/trainer/core/tiny_text_world.h"
#include "tests/trainer/core/train_attempt.h"
#include "trainer/artifact/module_artifact.h"
#include "trainer/training/loop.h"

using namespace petlab;
using namespace petlab::trainer;
using metrics::MaskKind;
using petlab::testing::events_of;
using petlab::testing::first_losses;
using petlab::testing::Run;
using petlab::testing::TinyTextWorld;
using petlab::testing::train;

namespace {

struct TextVariant {
  const char* kind;
  bool share;
  MaskKind mask;
};

protocol::TrialFile text_trial(const TinyTextWorld& world, const TextVariant& variant) {
  protocol::TrialFile trial = world.trial(variant.kind);
  trial.config.module.share = variant.share;
  trial.config.module.mask = variant.mask;
  trial.config.training.label_smoothing = 0.1;
  return trial;
}

const std::vector<TextVariant> kTextVariants{
    {"adapter", true, MaskKind::learned},     {"adapter", false, MaskKind::none},
    {"adapter", false, MaskKind::learned},    {"adapter", true, MaskKind::random},
    {"lora", true, MaskKind::learned},        {"prefix", true, MaskKind::learned},
    {"hyperformer++", false, MaskKind::none}, {"full_finetuning", false, MaskKind::none}};

std::vector<protocol::Metric> test_metrics(const Run& run) {
  std::vector<protocol::Metric> all;
  for (const protocol::Metric& metric : events_of<protocol::Metric>(run.events)) {
    if (metric.split == "test") all.push_back(metric);
  }
  return all;
}

}  // namespace

TEST_CASE("a T5's trial has the same numbers when it is rerun or resumed", "[trainer]") {
  const TinyTextWorld world;
  for (const TextVariant& variant : kTextVariants) {
    INFO(variant.kind << ", share " << variant.share << ", mask "
                      << metrics::to_string(variant.mask));
    const protocol::TrialFile trial = text_trial(world, variant);
    const std::string name = std::string(variant.kind) + (variant.share ? "-shared-" : "-") +
                             std::string(metrics::to_string(variant.mask));
    const Run whole = train(world.attempt("whole-" + name, trial));
    INFO(whole.log);
    REQUIRE(whole.outcome == TrialOutcome::finished);
    const auto finished = events_of<protocol::Finished>(whole.events);
    if (finished[0].bls_bits) {
      CHECK(static_cast<double>(*finished[0].stored_bits) == *finished[0].bls_bits);
    }
    const auto first = world.attempt("stopped-" + name, trial, 1);
    const Run stopped = train(first, 6);
    CHECK(stopped.outcome == TrialOutcome::interrupted);
    const auto* const last = std::get_if<protocol::Checkpoint>(&stopped.events.back().body);
    REQUIRE(last != nullptr);
    protocol::TrialFile again = trial;
    again.resume = protocol::Resume{1, last->step, stopped.events.back().seq, "../1/" + last->path};
    const auto second = world.attempt("stopped-" + name, again, 2);
    const Run resumed = train(second);
    INFO(resumed.log);
    REQUIRE(resumed.outcome == TrialOutcome::finished);
    std::map<std::int64_t, double> losses = stopped.losses;
    losses.insert(resumed.losses.begin(), resumed.losses.end());
    CHECK((losses == whole.losses));
    const protocol::TrialDirectory directory(world.folder.path() / ("whole-" + name),
                                             trial.trial_id, 1);
    CHECK(testing::read_file(second / "artifact.petl") == testing::read_file(directory.artifact()));

    // The artifact alone gives the same test metrics.
    BackboneStore backbones;
    const auto backbone = backbones.get(trial.backbone_folder);
    const Artifact artifact = read_artifact(directory.artifact());
    TrialModel model = load_model(artifact, trial.config, trial.tasks, backbone->pretrained());
    const auto runs = load_tasks(trial.tasks, trial.config.data, trial.data_folders, *backbone);
    model.merge(0);
    const std::atomic<bool> never{false};
    const Scores scores =
        model.objective(0).score(runs[0].test, predict(model, 0, runs[0].test, never));
    const std::vector<protocol::Metric> wanted = test_metrics(whole);
    REQUIRE(wanted.size() == scores.metrics.size());
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      CHECK(wanted[i].name == scores.metrics[i].first);
      CHECK((wanted[i].value == scores.metrics[i].second));
    }
  }
}

TEST_CASE("a T5's losses in bfloat16 are close to those in float32", "[trainer]") {
  const TinyTextWorld world;
  for (const char* const kind : {"adapter", "full_finetuning"}) {
    protocol::TrialFile trial = text_trial(world, kTextVariants.front());
    trial.config.module.kind = kind;
    trial.config.module.share = false;
    trial.config.module.mask = metrics::MaskKind::none;
    trial.config.training.dropout = 0;
    BackboneStore backbones;
    const std::vector<double> wanted = first_losses(backbones, trial, {}, 5);
    const std::vector<double> found =
        first_losses(backbones, trial, {at::kCPU, at::kFloat, at::kFloat, true}, 5);
    INFO(kind);
    REQUIRE(found.size() == wanted.size());
    CHECK((found != wanted));
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      CHECK(found[i] == Approx(wanted[i]).epsilon(2e-2));
    }
  }
}

TEST_CASE("a T5's loss is the mean over its target tokens, with or without gradient accumulation",
          "[trainer]") {
  const TinyTextWorld world;
  protocol::TrialFile trial = text_trial(world, kTextVariants.front());
  // Targets of one, two and three tokens, not counting the end token.
  trial.tasks.front().text_to_text.targets = {"good", "very bad 0"};
  trial.config.training.dropout = 0;
  const Placement exact = Placement::all_in(at::kDouble);
  BackboneStore backbones;
  const std::vector<double> whole = first_losses(backbones, trial, exact, 5);
  trial.config.training.gradient_accumulation = 4;
  const std::vector<double> parts = first_losses(backbones, trial, exact, 5);
  REQUIRE(whole.size() == parts.size());
  for (std::size_t i = 0; i < whole.size(); ++i) {
    CHECK(std::abs(whole[i] - parts[i]) < 1e-12);
  }

  // Computed by hand from the logits of each single example.
  const auto backbone = backbones.get(trial.backbone_folder, exact);
  const auto runs = load_tasks(trial.tasks, trial.config.data, trial.data_folders, *backbone);
  TrialModel model(trial.config, trial.tasks, backbone->pretrained());
  model.merge(0);
  const auto& t5 = dynamic_cast<const T5&>(*backbone->model);
  const TokenisedSplit& split = runs[0].train;
  double sum = 0;
  std::int64_t tokens = 0;
  for (const std::int64_t example : {0, 3, 7}) {
    const PackedBatch batch = pack(split, std::span(&example, 1));
    PackedSequences inputs = batch.targets;
    inputs.ids.insert(inputs.ids.begin(), 0);
    inputs.ids.pop_back();
    const Tensor encoded = t5.encode_sources(batch.input.sequences, model.module(), nullptr);
    const Tensor log_p = at::log_softmax(
        t5.logits(t5.decode(inputs, batch.input.sequences, encoded, model.module(), nullptr)), 1);
    for (std::size_t i = 0; i < batch.targets.ids.size(); ++i) {
      const Tensor row = log_p[static_cast<std::int64_t>(i)];
      sum -= 0.9 * row[batch.targets.ids[i]].item<double>() + 0.1 * row.mean().item<double>();
      ++tokens;
    }
  }
  const std::vector<std::int64_t> examples{0, 3, 7};
  CHECK(model.objective(0).loss_terms(split, examples) == tokens);
  const Objective& objective = model.objective(0);
  const PackedBatch all = pack(split, examples);
  const Tensor states = objective.states(model.pass(nullptr), all);
  CHECK(states.size(0) == objective.state_rows(all));
  const Tensor found = objective.loss(model.pass(nullptr), states, all);
  CHECK(std::abs(found.item<double>() - sum) < 1e-10);
}

TEST_CASE(
    "trials of several tasks of a T5, with hybrid masks or a hypernetwork, resume after an "
    "interrupt",
    "[trainer]") {
  const TinyTextWorld world;
  for (const std::string name : {"or", "and", "add", "hyperformer++"}) {
    protocol::TrialFile trial = text_trial(world, kTextVariants.front());
    if (const auto combine = metrics::mask_combination_from(name)) {
      trial.config.module.combine = *combine;
    } else {
      trial = text_trial(world, {"hyperformer++", false, MaskKind::none});
    }
    trial.tasks.push_back(trial.tasks.front());
    trial.tasks.back().name = "tiny-other";
    trial.tasks.back().text_to_text.source = "not {text1}";
    trial.config.tasks = {"tiny-task", "tiny-other"};
    INFO(name);
    const Run whole = train(world.attempt("several-" + name, trial));
    INFO(whole.log);
    REQUIRE(whole.outcome == TrialOutcome::finished);
    CHECK(test_metrics(whole).size() == 4);
    const Run stopped = train(world.attempt("several-stopped-" + name, trial, 1), 8);
    const auto& last = std::get<protocol::Checkpoint>(stopped.events.back().body);
    protocol::TrialFile again = trial;
    again.resume = protocol::Resume{1, last.step, stopped.events.back().seq, "../1/" + last.path};
    const auto second = world.attempt("several-stopped-" + name, again, 2);
    REQUIRE(train(second).outcome == TrialOutcome::finished);
    const protocol::TrialDirectory directory(world.folder.path() / ("several-" + name),
                                             trial.trial_id, 1);
    CHECK(testing::read_file(second / "artifact.petl") == testing::read_file(directory.artifact()));
  }
}

TEST_CASE("validations and checkpoints follow the configured numbers of steps", "[trainer]") {
  const TinyTextWorld world;
  protocol::TrialFile trial = text_trial(world, kTextVariants.front());
  trial.config.training.steps = 10;
  trial.config.training.evaluate_every = 4;
  trial.config.training.warmup_steps = 2;
  trial.config.training.checkpoint_every = 2;
  const auto attempt = world.attempt("steps", trial);
  const Run run = train(attempt);
  INFO(run.log);
  REQUIRE(run.outcome == TrialOutcome::finished);
  CHECK(run.losses.size() == 10);
  std::vector<std::int64_t> validated, checkpoints;
  std::map<std::int64_t, double> reported;
  for (const protocol::Metric& metric : events_of<protocol::Metric>(run.events)) {
    if (metric.split == "validation" && metric.name == "accuracy") validated.push_back(metric.step);
    if (metric.split == "train") reported[metric.step] = *metric.value;
  }
  CHECK((validated == std::vector<std::int64_t>{4, 8, 10}));
  for (const protocol::Checkpoint& one : events_of<protocol::Checkpoint>(run.events)) {
    checkpoints.push_back(one.step);
  }
  CHECK((checkpoints == std::vector<std::int64_t>{2, 4, 6, 8, 10}));
  const auto mean = [&](std::int64_t from, std::int64_t to) {
    double sum = 0;
    for (std::int64_t step = from; step <= to; ++step) sum += run.losses.at(step);
    return sum / static_cast<double>(to - from + 1);
  };
  CHECK(reported.at(4) == Approx(mean(1, 4)).epsilon(1e-12));
  CHECK(reported.at(8) == Approx(mean(5, 8)).epsilon(1e-12));
  CHECK(reported.at(10) == Approx(mean(9, 10)).epsilon(1e-12));
}

TEST_CASE("a T5's answer is a class only if it is that class's text", "[trainer]") {
  sweeps::TaskDeclaration task;
  task.classes = {"no", "yes", "maybe"};
  CHECK((class_of_text(task, "2") == 2));
  CHECK((class_of_text(task, " 1\n") == 1));
  for (const char* text : {"", "3", "11", "1.", "-1", "yes", "0 1"}) {
    INFO(text);
    CHECK(!class_of_text(task, text));
  }
  task.text_to_text.targets = {"no", "yes", "may be"};
  CHECK((class_of_text(task, "may be") == 2));
  CHECK(!class_of_text(task, "0"));
}

TEST_CASE("a T5 without its tokenizer is refused", "[trainer]") {
  const TinyTextWorld world;
  const protocol::TrialFile trial = text_trial(world, kTextVariants.front());
  BackboneStore backbones;
  const auto backbone = backbones.get(trial.backbone_folder);
  CHECK_THROWS_AS(TrialModel(trial.config, trial.tasks, *backbone->model), std::invalid_argument);
  // An encoder refuses a T5's decoding options.
  protocol::TrialFile other = world.TinyWorld::trial("adapter");
  other.config.decoding.beams = 4;
  const auto encoder = backbones.get(other.backbone_folder);
  CHECK_THROWS_AS(TrialModel(other.config, other.tasks, encoder->pretrained()),
                  std::invalid_argument);
}

TEST_CASE("kept predictions give the test metrics", "[trainer]") {
  const TinyTextWorld world;
  for (const bool texts : {false, true}) {
    protocol::TrialFile trial =
        texts ? text_trial(world, kTextVariants.front()) : world.TinyWorld::trial("adapter");
    trial.config.evaluation.keep_predictions = true;
    // A task name that cannot be a file name.
    trial.tasks.front().name = "tiny/task";
    trial.config.tasks = {"tiny/task"};
    const auto attempt = world.attempt(texts ? "kept-texts" : "kept", trial);
    const Run run = train(attempt);
    INFO(run.log);
    REQUIRE(run.outcome == TrialOutcome::finished);
    const auto lines = [&](const char* name) {
      std::vector<std::string> all;
      std::ifstream stream(attempt / "predictions" / name);
      for (std::string line; std::getline(stream, line);) all.push_back(line);
      return all;
    };
    const std::vector<std::string> gold = lines("tiny%2Ftask.gold.txt");
    const std::vector<std::string> predicted = lines("tiny%2Ftask.predicted.txt");
    REQUIRE(gold.size() == 8);
    REQUIRE(predicted.size() == 8);
    double right = 0;
    for (std::size_t i = 0; i < gold.size(); ++i) right += gold[i] == predicted[i] ? 1 : 0;
    const std::vector<protocol::Metric> metrics = test_metrics(run);
    REQUIRE(metrics.size() == 2);
    REQUIRE(metrics.front().name == "accuracy");
    CHECK(*metrics.front().value == right / 8);
  }
}

TEST_CASE("a text task is scored with its text metrics", "[trainer]") {
  const TinyTextWorld world;
  protocol::TrialFile trial = text_trial(world, kTextVariants.back());
  sweeps::TaskDeclaration& task = trial.tasks.front();
  task.kind = sweeps::TaskKind::text;
  task.target = sweeps::TargetRule::text;
  task.classes.clear();
  task.layouts.front().text_columns = {"label"};
  task.layouts.front().target_column = "sentence";
  task.metrics = {"chrf", "token-error-rate", "exact-match"};
  task.select_by = {"chrf"};
  trial.config.training.epochs = 6;
  trial.config.training.dropout = 0;
  trial.config.decoding.beams = 3;
  trial.config.decoding.max_tokens = 6;
  trial.config.evaluation.keep_predictions = true;
  const auto attempt = world.attempt("texts", trial);
  const Run run = train(attempt);
  INFO(run.log);
  REQUIRE(run.outcome == TrialOutcome::finished);
  const auto strings = [&](const char* name) {
    std::vector<std::string> all;
    std::ifstream stream(attempt / "predictions" / name);
    for (std::string line; std::getline(stream, line);) {
      all.push_back(nlohmann::json::parse(line).get<std::string>());
    }
    return all;
  };
  const std::vector<std::string> gold = strings("tiny-task.gold.jsonl");
  const std::vector<std::string> predicted = strings("tiny-task.predicted.jsonl");
  REQUIRE(gold.size() == 8);
  CHECK(gold.front().starts_with("the film is"));
  for (const protocol::Metric& metric : test_metrics(run)) {
    CHECK(metric.value == metrics::metric_named(metric.name).of_texts(gold, predicted));
  }
  CHECK(test_metrics(run).size() == 3);
}
