#include "sweeps/field_problems.h"

#include "tests/support/catch.h"
#include "tests/sweeps/fixture.h"

namespace petlab::sweeps {
namespace {

using petlab::sweeps::testing::Home;
using petlab::sweeps::testing::Strings;

TEST_CASE("Fields that an encoder does not support are reported once the backbone is known",
          "[sweeps]") {
  const Home home;
  home.t5_backbone("t5-small", 512, 6);
  const std::string settings =
      "  module.kind: lora\n"
      "  module.cross_attention: true\n"
      "  data.max_target_tokens: 64\n"
      "  decoding: {beams: 4, length_penalty: 0.5, early_stopping: true, min_tokens: 2, "
      "max_tokens: 9, no_repeat_ngrams: 3}\n"
      "  training: {steps: 10, warmup_steps: 2, evaluate_every: 5, label_smoothing: 0.1}\n"
      "  evaluation.keep_predictions: true\n";
  const Strings found =
      home.problems("sweep: t\nbase:\n  backbone: minilm\n  task: cola\n" + settings);
  const std::string encoder = " (the default) with an encoder (bert)";
  CHECK(found ==
        Strings{"sweep.yaml:6: module.cross_attention: found true, expected false" + encoder,
                "sweep.yaml:7: data.max_target_tokens: found 64, expected 128" + encoder,
                "sweep.yaml:8: decoding.beams: found 4, expected 1" + encoder,
                "sweep.yaml:8: decoding.early_stopping: found true, expected false" + encoder,
                "sweep.yaml:8: decoding.length_penalty: found 0.5, expected 1.0" + encoder,
                "sweep.yaml:8: decoding.max_tokens: found 9, expected 0" + encoder,
                "sweep.yaml:8: decoding.min_tokens: found 2, expected 0" + encoder,
                "sweep.yaml:8: decoding.no_repeat_ngrams: found 3, expected 0" + encoder});
  const Sweep sweep = home.load("sweep: t\nbase:\n  backbone: t5-small\n  task: cola\n" + settings);
  REQUIRE(sweep.trials.size() == 1);
  CHECK(sweep.notes.empty());
  CHECK(sweep.trials[0].config.decoding.beams == 4);
  CHECK(sweep.trials[0].config.training.evaluate_every == 5);
  CHECK(sweep.trials[0].config.evaluation.keep_predictions);
}

TEST_CASE("A task that generates texts needs a T5", "[sweeps]") {
  const Home home;
  home.t5_backbone("t5-small", 512, 6);
  home.folder().write("mine.yaml",
                      "task: mine\nfiles: {train: x.jsonl}\nsplit: one_file\n"
                      "columns: {text: a, target: b}\nmetrics: [bleu]\n");
  CHECK(home.problems("sweep: t\nbase: {backbone: minilm, task: mine.yaml}\n") ==
        Strings{"sweep.yaml:2: task: found mine, which generates texts, on an encoder (bert), "
                "expected a T5 as backbone, or a task with labels or scores"});
  CHECK(home.problems("sweep: t\nbase: {backbone: t5-small, task: mine.yaml}\n").empty());
}

TEST_CASE("Label smoothing needs classes, except with a T5 that generates scores as texts",
          "[sweeps]") {
  const Home home;
  home.t5_backbone("t5-small", 512, 6);
  const std::string rest = "  task: stsb\n  training.label_smoothing: 0.1\n";
  CHECK(
      home.problems("sweep: t\nbase:\n  backbone: minilm\n" + rest) ==
      Strings{"sweep.yaml:5: training.label_smoothing: found 0.1, expected 0 with task stsb, whose "
              "targets are scores, on an encoder (bert)"});
  CHECK(home.problems("sweep: t\nbase:\n  backbone: t5-small\n" + rest).empty());
}

TEST_CASE("A T5 has no head", "[sweeps]") {
  const Home home;
  home.t5_backbone("t5-small", 512, 6);
  CHECK(
      home.problems("sweep: t\nbase: {backbone: t5-small, task: cola, module.kind: head_only}\n") ==
      Strings{"sweep.yaml:2: module.kind: found head_only, expected another kind with t5, which "
              "has no head"});
}

TEST_CASE("Generated adapters need an encoder and a decoder, and cannot be shared or masked",
          "[sweeps]") {
  const Home home;
  home.t5_backbone("t5-small", 512, 6);
  const std::string kind = "module.kind: hyperformer++";
  CHECK(home.problems("sweep: t\nbase: {backbone: minilm, task: cola, " + kind + "}\n") ==
        Strings{"sweep.yaml:2: module.kind: found hyperformer++, expected another kind with an "
                "encoder (bert), which has no decoder"});
  CHECK(home.problems("sweep: t\nbase:\n  backbone: t5-small\n  tasks: [cola, rte]\n  " + kind +
                      "\n  module.share: true\n  module.mask: learned\n"
                      "  module.hyper_embedding: 0\n") ==
        Strings{"sweep.yaml:6: module.share: found true, expected false with module.kind "
                "hyperformer++",
                "sweep.yaml:7: module.mask: found learned, expected none with module.kind "
                "hyperformer++",
                "sweep.yaml:8: module.hyper_embedding: found 0, expected a whole number from 1 to "
                "65536"});
  // One task is allowed too, since layers and positions have embeddings.
  const Sweep sweep = home.load("sweep: t\nbase:\n  backbone: t5-small\n  " + kind +
                                "\nvariants:\n  one: {task: cola}\n  two: {tasks: [cola, rte]}\n"
                                "  same: {task: cola, module.kind: adapter, module.bottleneck: "
                                "{match_storage_of: one}}\n");
  REQUIRE(sweep.trials.size() == 3);
  CHECK(sweep.notes.empty());
  CHECK(sweep.trials[0].config.module.bottleneck == 24);
  CHECK(*sweep.trials[1].bls_bits == *sweep.trials[0].bls_bits + 32 * 64);
  CHECK(*sweep.trials[2].bls_bits == Approx(*sweep.trials[0].bls_bits).epsilon(0.01));
}

TEST_CASE("Steps together with epochs are refused, even if epochs has its default", "[sweeps]") {
  const Home home;
  const std::string base = "sweep: t\nbase:\n  backbone: minilm\n  task: cola\n";
  CHECK(home.problems(base + "  training: {steps: 10, warmup_steps: 2}\n").empty());
  CHECK(home.problems(base +
                      "  training.steps: 10\n  training.epochs: 20\n  training.warmup_steps: 2\n"
                      "  training.warmup_ratio: 0.1\n") ==
        Strings{"sweep.yaml:6: training.epochs: found 20, expected omitted when training.steps is "
                "set (10)",
                "sweep.yaml:8: training.warmup_ratio: found 0.1, expected omitted when "
                "training.warmup_steps is set (2)"});
  CHECK(
      home.problems(base + "  training.steps: 10\n  training.epochs: 3\n") ==
      Strings{"sweep.yaml:6: training.epochs: found 3, expected omitted when training.steps is set "
              "(10)"});
  // Variants may use either steps or epochs.
  CHECK(home.problems(base + "variants:\n  a: {training.steps: 10}\n  b: {training.epochs: 3}\n")
            .empty());
}

TEST_CASE("The combination of masks is a field only of trials with task masks", "[sweeps]") {
  const Home home;
  const Sweep sweep = home.load(
      "sweep: t\nbase: {backbone: minilm, module.combine: and}\n"
      "variants:\n"
      "  one:  {task: cola, module.share: true, module.mask: learned}\n"
      "  bare: {tasks: [cola, rte], module.share: true}\n"
      "  both: {tasks: [cola, rte], module.share: true, module.mask: learned}\n");
  REQUIRE(sweep.trials.size() == 3);
  const Field& combine = *find_field("module.combine");
  CHECK_FALSE(is_active(combine, sweep.trials[0].config));
  CHECK_FALSE(is_active(combine, sweep.trials[1].config));
  CHECK(is_active(combine, sweep.trials[2].config));
  CHECK(home.load("sweep: t\nbase: {backbone: minilm, task: cola, module.combine: and}\n").notes ==
        Strings{(home.folder().path() / "sweep.yaml").string() +
                ":2: module.combine is set, but no trial uses it with its module and switches"});
}

}  // namespace
}  // namespace petlab::sweeps
