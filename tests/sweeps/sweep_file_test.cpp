// The contents of sweep files, and every mistake in them with its message. One file, so that
// messages are easy to find.
#include "sweeps/sweep_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <set>

#include "metrics/storage.h"
#include "sweeps/error.h"
#include "tests/support/catch.h"
#include "tests/sweeps/fixture.h"

using namespace petlab;
using namespace petlab::sweeps;
using petlab::sweeps::testing::Home;
using petlab::sweeps::testing::Strings;

namespace {

// The design's example, verbatim.
const std::string kExample = R"(sweep: ablation-quick
about: Sharing and masking taken apart, at equal storage
base:                                  # every field of a trial; dotted keys reach into groups
  backbone: minilm
  task: movie-polarity
  module.kind: adapter
  training: {epochs: 3, batch_size: 32, learning_rate: 1e-4, mask_learning_rate: 3e-3}
variants:                              # named rows of the ablation
  vanilla:    {module.share: false, module.mask: none,    module.bottleneck: 16}
  propetl:    {module.share: true,  module.mask: learned, module.bottleneck: 16, module.sparsity_ratio: 0.5}
  random:     {module.share: true,  module.mask: random,  module.bottleneck: 16, module.sparsity_ratio: 0.5}
  only_share: {module.share: true,  module.mask: none,    module.bottleneck: {match_storage_of: propetl}}
  only_mask:  {module.share: false, module.mask: learned, module.bottleneck: 16, module.sparsity_ratio: {match_storage_of: propetl}}
grid:                                  # every combination
  seed: [42, 43, 44]
zip:                                   # groups of lists that advance together; several groups multiply
  - {task: [cola, rte], training.epochs: [20, 30]}
when:                                  # conditional overrides, in order
  - {if: {module.kind: lora}, set: {module.alpha: 48}}
exclude:
  - {variant: random, seed: 44}
)";

const std::string kBase =
    "sweep: t\nbase: {backbone: minilm, task: cola, module.kind: adapter, module.bottleneck: 16}\n";

std::vector<SweepTrial> of_variant(const Sweep& sweep, const std::string& variant) {
  std::vector<SweepTrial> found;
  for (const SweepTrial& trial : sweep.trials) {
    if (std::find(trial.variants.begin(), trial.variants.end(), variant) != trial.variants.end()) {
      found.push_back(trial);
    }
  }
  return found;
}

}  // namespace

TEST_CASE("The design's example expands as described in its comments", "[sweeps]") {
  const Home home;
  const Sweep sweep = home.load(kExample);
  CHECK(sweep.name == "ablation-quick");
  CHECK(sweep.about == "Sharing and masking taken apart, at equal storage");
  CHECK(sweep.variants == Strings{"vanilla", "propetl", "random", "only_share", "only_mask"});
  // 5 variants x 2 tasks x 3 seeds, without random at seed 44 on both tasks.
  REQUIRE(sweep.trials.size() == 28);
  const SweepTrial& first = sweep.trials.front();
  CHECK(first.variants == Strings{"vanilla"});
  CHECK(first.config.tasks == Strings{"cola"});
  CHECK(first.config.training.epochs == 20);
  CHECK(first.config.seed.value == 42);
  CHECK(sweep.trials[1].config.seed.value == 43);  // the last list varies fastest
  CHECK(sweep.trials[3].config.tasks == Strings{"rte"});
  CHECK(sweep.trials[3].config.training.epochs == 30);
  for (const SweepTrial& trial : of_variant(sweep, "random")) CHECK(trial.config.seed.value != 44);
  CHECK(of_variant(sweep, "random").size() == 4);

  const double propetl = *of_variant(sweep, "propetl").front().bls_bits;
  CHECK(propetl == 32.0 * (2 * 16 * 384 + 16 + 384) + 2.0 * 16 * 384 * 6);
  const SweepTrial only_share = of_variant(sweep, "only_share").front();
  const std::int64_t bottleneck = only_share.config.module.bottleneck;
  const auto shared = [](std::int64_t bn) {
    return 32.0 * (2.0 * static_cast<double>(bn) * 384 + static_cast<double>(bn) + 384);
  };
  CHECK(*only_share.bls_bits == shared(bottleneck));
  CHECK(std::abs(shared(bottleneck) - propetl) <= std::abs(shared(bottleneck + 1) - propetl));
  CHECK(std::abs(shared(bottleneck) - propetl) < std::abs(shared(bottleneck - 1) - propetl));
  CHECK(only_share.storage_note ==
        "bottleneck 19 for the storage of propetl: 96 bits (0.02 %) more");
  const SweepTrial only_mask = of_variant(sweep, "only_mask").front();
  CHECK(only_mask.config.module.sparsity_ratio == 0.1708);
  CHECK(only_mask.storage_note.find("sparsity_ratio 0.1708 for the storage of propetl") == 0);
  CHECK(sweep.notes.size() == 2);  // no trial is a lora: the rule never matches, alpha is unused
}

TEST_CASE("Nested groups and dotted keys mean the same", "[sweeps]") {
  const Home home;
  const Sweep dotted = home.load(
      "sweep: t\nbase:\n  backbone: minilm\n  task: cola\n  training.epochs: 3\n"
      "  user.note: x\ngrid: {training.batch_size: [8, 16], user.k: [1]}\n");
  const Sweep nested = home.load(
      "sweep: t\nbase:\n  backbone: minilm\n  task: cola\n  training: {epochs: 3}\n"
      "  user: {note: x}\ngrid: {training: {batch_size: [8, 16]}, user: {k: [1]}}\n");
  REQUIRE(dotted.trials.size() == 2);
  for (std::size_t i = 0; i < 2; ++i) {
    CHECK(dotted.trials[i].id == nested.trials[i].id);
    CHECK(dotted.trials[i].config == nested.trials[i].config);
  }
  CHECK(dotted.trials[0].config.user == R"({"k":1,"note":"x"})");
  CHECK(dotted.trials[0].variants.empty());
}

TEST_CASE("Later sections override earlier ones, and later rules earlier ones", "[sweeps]") {
  const Home home;
  const Sweep sweep = home.load(kBase + R"(
variants: {a: {training.epochs: 2}, b: {}}
zip: [{training.epochs: [5], seed: [7]}]
when:
  - {if: {variant: a}, set: {training.epochs: 6, module.kind: lora}}
  - {if: {module.kind: lora, training.epochs: [6, 7]}, set: {module.rank: 4}}
  - {if: {module.bottleneck: 16}, set: {training.epochs: 9}}
)");
  REQUIRE(sweep.trials.size() == 2);
  const TrialConfig& a = sweep.trials[0].config;
  CHECK(a.training.epochs == 6);
  CHECK(a.module.rank == 4);
  CHECK(a.training.mask_learning_rate == 3e-2);  // lora's default
  CHECK(a.seed.value == 7);
  // Trial a has no bottleneck, so the last rule matches only b.
  CHECK(sweep.trials[1].config.training.epochs == 9);
}

TEST_CASE("A sweep's values override the defaults of a module's kind", "[sweeps]") {
  const Home home;
  const Sweep sweep = home.load(R"(sweep: t
base: {backbone: minilm, task: cola, module.share: true, module.mask: learned,
       training.mask_learning_rate: 5e-3}
variants:
  adapter: {module.kind: adapter}
  lora: {module.kind: lora}
  prefix: {module.kind: prefix}
  own: {module.kind: lora, training.mask_learning_rate: 2e-3}
)");
  REQUIRE(sweep.trials.size() == 4);
  for (const SweepTrial& trial : sweep.trials) {
    INFO(trial.variants.front());
    const bool sets_rate = trial.variants.front() == "own";
    CHECK(trial.config.training.mask_learning_rate == (sets_rate ? 2e-3 : 5e-3));
  }
}

TEST_CASE("A variant overrides zip and grid, and the plan notes values without effect",
          "[sweeps]") {
  const Home home;
  const std::string text = kBase + R"(
variants:
  propetl: {module.share: true, module.mask: learned}
  only_share: {module.share: true, module.bottleneck: {match_storage_of: propetl}}
  fixed: {module.bottleneck: 12, training.epochs: 4}
  late: {module.bottleneck: 12, training.epochs: 5}
  lora: {module.kind: lora}
zip: [{seed: [1, 2], training.epochs: [2, 3]}]
grid: {module.bottleneck: [16, 32], user.note: [x, x]}
)";
  const Sweep sweep = home.load(text);
  const auto bottlenecks = [&](const std::string& variant) {
    std::multiset<std::int64_t> found;
    for (const SweepTrial& trial : of_variant(sweep, variant)) {
      found.insert(trial.config.module.bottleneck);
    }
    return found;
  };
  using Sizes = std::multiset<std::int64_t>;
  CHECK(bottlenecks("propetl") == Sizes{16, 16, 32, 32});
  CHECK(bottlenecks("only_share") == Sizes{19, 19, 38, 38});
  CHECK(bottlenecks("fixed") == Sizes{12, 12});
  CHECK(of_variant(sweep, "lora").size() == 2);
  // The zip also varies the seed, so it has an effect on all variants.
  CHECK(of_variant(sweep, "fixed")[1].config.training.epochs == 4);
  CHECK(of_variant(sweep, "fixed")[1].config.seed.value == 2);
  const std::string file = (home.folder().path() / "sweep.yaml").string();
  CHECK(sweep.notes ==
        Strings{file + ":11: the values of module.bottleneck change nothing for fixed, late, lora: "
                       "equal trials are merged",
                file + ":11: the values of user.note change nothing for propetl, only_share, "
                       "fixed, late, lora: equal trials are merged"});
  // The note says if all variants set the value themselves.
  const Sweep overridden = home.load(kBase + "variants: {a: {seed: 1}}\ngrid: {seed: [2, 3]}\n");
  CHECK(overridden.trials.size() == 1);
  CHECK(overridden.trials[0].config.seed.value == 1);
  CHECK(overridden.notes ==
        Strings{file + ":4: the values of seed change nothing for a, which sets its "
                       "own: equal trials are merged"});
}

TEST_CASE("Equal trials are merged under both names", "[sweeps]") {
  const Home home;
  const Sweep sweep = home.load(kBase + R"(
variants:
  plain: {}
  masked_by_nothing: {module.mask: none, module.sparsity_ratio: 0.25}
  other: {module.bottleneck: 8}
grid: {seed: [1, 2], training.checkpoint_every: [0, 10]}
)");
  REQUIRE(sweep.trials.size() == 4);
  CHECK(sweep.trials[0].variants == Strings{"plain", "masked_by_nothing"});
  CHECK(sweep.trials[2].variants == Strings{"other"});
}

TEST_CASE("A priority does not change the id, and the highest of equal trials counts", "[sweeps]") {
  const Home home;
  const Sweep sweep = home.load(kBase + R"(
variants:
  plain: {priority: -3}
  same: {priority: 7}
  last: {priority: 5}
  other: {module.bottleneck: 8}
grid: {seed: [1, 2]}
when:
  - {if: {seed: 2, priority: 0}, set: {priority: 1}}
)");
  REQUIRE(sweep.trials.size() == 4);
  CHECK(sweep.trials[0].priority == 7);
  CHECK(sweep.trials[1].priority == 7);
  CHECK(sweep.trials[2].priority == 0);
  CHECK(sweep.trials[3].priority == 1);
  const Sweep without = home.load(kBase + "grid: {seed: [1, 2]}\n");
  CHECK(without.trials[0].id == sweep.trials[0].id);
  CHECK_THROWS_WITH(
      home.load(kBase + "variants: {a: {priority: high}}\n"),
      petlab::testing::has_text("priority: found 'high', expected a whole number from -1000000 "
                                "to 1000000"));
}

TEST_CASE("A number of GPUs does not change the id, and the largest of equal trials counts",
          "[sweeps]") {
  const Home home;
  const Sweep sweep = home.load(kBase + R"(
variants:
  two: {resources.gpus: 2}
  same: {resources: {gpus: 1}}
  other: {module.bottleneck: 8}
grid: {seed: [1, 2]}
when:
  - {if: {seed: 2, resources.gpus: 1}, set: {resources.gpus: 4}}
)");
  REQUIRE(sweep.trials.size() == 4);
  CHECK(sweep.trials[0].gpus == 2);
  CHECK(sweep.trials[1].gpus == 4);
  CHECK(sweep.trials[2].gpus == 1);
  CHECK(sweep.trials[3].gpus == 4);
  const Sweep without = home.load(kBase + "grid: {seed: [1, 2]}\n");
  CHECK(without.trials[0].id == sweep.trials[0].id);
  CHECK(without.trials[0].gpus == 1);
  CHECK_THROWS_WITH(
      home.load(kBase + "variants: {a: {resources: {gpus: 0}}}\n"),
      petlab::testing::has_text("resources.gpus: found 0, expected a whole number from 1 to "
                                "1024"));
}

TEST_CASE("The highest priority of merged trials counts, in any order", "[sweeps]") {
  const Home home;
  const std::vector<std::array<int, 3>> orders = {{7, -3, 0}, {0, 7, -3}, {-3, 0, 7}};
  for (const auto& [a, b, c] : orders) {
    const Sweep sweep = home.load(
        kBase + fmt::format("variants: {{a: {{priority: {}}}, b: {{priority: {}}}, c: {{priority: "
                            "{}}}}}\n",
                            a, b, c));
    REQUIRE(sweep.trials.size() == 1);
    CHECK(sweep.trials[0].variants.size() == 3);
    CHECK(sweep.trials[0].priority == 7);
  }
}

TEST_CASE("Several zip groups multiply, and multi-task trials are lists of tasks", "[sweeps]") {
  const Home home;
  const Sweep sweep = home.load(kBase + R"(
zip:
  - {seed: [1, 2], training.epochs: [3, 4]}
  - {training: {batch_size: [8, 16, 32], gradient_accumulation: [1, 2, 4]}}
grid: {tasks: [[cola, rte], [mrpc]]}
)");
  REQUIRE(sweep.trials.size() == 12);
  CHECK(sweep.trials[0].config.tasks == Strings{"cola", "rte"});
  CHECK(sweep.trials[0].storage->tasks == 2);
  CHECK(sweep.trials[1].config.tasks == Strings{"mrpc"});
  const TrialConfig& last = sweep.trials.back().config;
  CHECK(last.seed.value == 2);
  CHECK(last.training.gradient_accumulation == 4);
}

TEST_CASE("Chained sizes are solved, at the same grid point", "[sweeps]") {
  const Home home;
  const Sweep sweep = home.load(R"(
sweep: chain
base: {backbone: roberta-base, task: cola}
variants:
  c: {module.kind: lora, module.share: true, module.rank: {match_storage_of: b}}
  b: {module.kind: prefix, module.share: true, module.prefix_length: {match_storage_of: a}}
  a: {module.kind: adapter, module.share: true, module.mask: learned}
grid: {module.bottleneck: [64, 128]}
)");
  // Neither c nor b has a bottleneck; at each grid point they match another a.
  REQUIRE(sweep.trials.size() == 6);
  for (const SweepTrial& trial : sweep.trials) {
    if (trial.config.module.kind != "lora") continue;
    CHECK(trial.config.module.rank == (trial.config.module.rank < 60 ? 44 : 88));
  }
  const auto a = of_variant(sweep, "a");
  const auto b = of_variant(sweep, "b");
  for (std::size_t i = 0; i < 2; ++i) {
    CHECK(std::abs(*b[i].bls_bits - *a[i].bls_bits) <= 32 * 768);
  }
}

TEST_CASE("match_storage_of finds the paper's sizes of table 12", "[sweeps]") {
  const Home home;
  const Sweep sweep = home.load(R"(
sweep: table12
base: {backbone: roberta-base, task: cola, module.bottleneck: 64}
variants:
  propetl: {module.share: true, module.mask: learned}
  same_bn: {module.mask: learned, module.sparsity_ratio: {match_storage_of: propetl}}
  same_k:  {module.mask: learned, module.bottleneck: {match_storage_of: propetl}}
  only_share: {module.share: true, module.bottleneck: {match_storage_of: propetl}}
)");
  // The paper prints 64/11, 14/50 and 88/100.
  CHECK(of_variant(sweep, "same_bn")[0].config.module.sparsity_ratio == Approx(0.11).margin(0.006));
  CHECK(of_variant(sweep, "same_k")[0].config.module.bottleneck == 14);
  CHECK(of_variant(sweep, "only_share")[0].config.module.bottleneck == 88);
}

TEST_CASE("Of two equally close sizes the smaller is chosen", "[sweeps]") {
  const Home home;
  // Half the values of a prefix of length 3 take the storage of length 1.5, which is equally far
  // from lengths 1 and 2.
  home.backbone("tiny", 12, 3, 100, "w");
  const Sweep sweep = home.load(R"(
sweep: tie
base: {backbone: tiny, task: cola, module.kind: prefix}
variants:
  half: {module.prefix_length: 3, module.mask: learned, module.sparsity_ratio: 0.5}
  plain: {module.prefix_length: {match_storage_of: half}}
)");
  CHECK(of_variant(sweep, "plain")[0].config.module.prefix_length == 1);
  CHECK(of_variant(sweep, "plain")[0].storage_note ==
        "prefix_length 1 for the storage of half: 1152 bits (33.33 %) less");
}

TEST_CASE("All mistakes of a file are reported, each with its line", "[sweeps]") {
  const Home home;
  CHECK(home.problems(R"(sweep: bad
base:
  backbone: minilm
  task: movie-polarty
  module.kind: adaptor
  training: {lerning_rate: 1e-3, epochs: three}
  learning_rate: 1
variants:
  a: {module.bottleneck: 0}
  b: {module.bottleneck: {match_storage_of: propetl}}
gird: {seed: [1]}
zip:
  - {seed: [1, 2], training.batch_size: [8]}
exclude:
  - {variant: c}
)") == Strings{
           "sweep.yaml:4: task: found 'movie-polarty', expected the name of a task, or of a .yaml "
           "file that declares one (nearest: movie-polarity)",
           "sweep.yaml:5: module.kind: found 'adaptor', expected adapter, lora, prefix, "
           "full_finetuning, head_only or hyperformer++ (nearest: adapter)",
           "sweep.yaml:6: base: found 'training.lerning_rate', expected a field of a trial "
           "(nearest: "
           "training.learning_rate)",
           "sweep.yaml:6: training.epochs: found 'three', expected a whole number from 1 to "
           "1000000000",
           "sweep.yaml:7: base: found 'learning_rate', expected a field of a trial (nearest: "
           "training.learning_rate)",
           "sweep.yaml:9: module.bottleneck: found 0, expected a whole number from 1 to 1048576",
           "sweep.yaml:10: module.bottleneck.match_storage_of: found 'propetl', expected the name "
           "of "
           "a variant",
           "sweep.yaml:11: sweep file: found 'gird', expected a section: sweep, about, base, "
           "variants, zip, search, grid, when, exclude, stop_early (nearest: grid)",
           "sweep.yaml:13: zip: found 1 values of training.batch_size, expected 2 as of seed",
           "sweep.yaml:15: exclude.variant: found 'c', expected the name of a variant",
       });
}

TEST_CASE("Each kind of mistake is reported with its line, what was found and what was expected",
          "[sweeps]") {
  const Home home;
  const auto check = [&](const std::string& text, const Strings& problems) {
    INFO(text);
    CHECK(home.problems(text) == problems);
  };
  const std::string task_wanted =
      "expected the name of a task, or of a .yaml file that declares one";
  SECTION("of the file as a whole") {
    check("", {"sweep.yaml:1: YAML: found an empty file, expected a group of keys"});
    check("- a\n", {"sweep.yaml:1: the file: found a list, expected the sections of a sweep"});
    check("sweep: [1\nbase: {}", {"sweep.yaml:2: YAML: found a syntax error (end of sequence flow "
                                  "not found), expected YAML"});
    check(kBase + "about: \"\xff\"\n", {"sweep.yaml:3: YAML: found the byte 0xff, expected UTF-8"});
    check(kBase + "sweep: u\n",
          {"sweep.yaml:3: YAML: found the key 'sweep' twice, expected it once (first in line 1)"});
    check(kBase + "---\nsweep: u\n",
          {"sweep.yaml:4: YAML: found a second document, expected one document"});
    check(kBase + "variants: {a: !mine {}}\n",
          {"sweep.yaml:3: YAML: found the tag !mine, expected no tag"});
    check("base: {backbone: minilm, task: cola}\n",
          {"sweep.yaml:1: sweep: found nothing, expected a name of 1 to 100 bytes "
           "without line breaks, tabs and other control characters"});
  }
  SECTION("of sections") {
    check("sweep: t\nbase: 3\n", {"sweep.yaml:2: base: found 3, expected a group of keys"});
    check("sweep: t\nbase:\ngrid: {backbone: [minilm]}\n",
          {"sweep.yaml:1: task: found nothing, expected the name of a task"});
    check(kBase + "variants: {}\n",
          {"sweep.yaml:3: variants: found no variant, expected named groups of keys"});
    check(kBase + "variants: {a: 1}\n",
          {"sweep.yaml:3: variants.a: found 1, expected a group of keys"});
    check(kBase + "grid: {seed: []}\n",
          {"sweep.yaml:3: seed: found an empty list, expected a list of values"});
    check(kBase + "grid: {seed: 1}\n", {"sweep.yaml:3: seed: found 1, expected a list of values"});
    check(kBase + "grid: [1]\n", {"sweep.yaml:3: grid: found a list, expected a group of lists"});
    check(kBase + "zip: {seed: [1]}\n",
          {"sweep.yaml:3: zip: found a group of keys, expected a list of groups of lists"});
    check(kBase + "zip: [{}]\n",
          {"sweep.yaml:3: zip: found an empty group, expected a group of lists"});
    check(kBase + "when:\n  - {if: {seed: 1}}\n",
          {"sweep.yaml:4: when.set: found nothing, expected a group of keys"});
    check(kBase + "when:\n  - {iff: {seed: 1}, set: {seed: 2}}\n",
          {"sweep.yaml:4: when.if: found nothing, expected a group of keys",
           "sweep.yaml:4: when: found 'iff', expected if and set"});
    check(kBase + "exclude: [{seed: x}]\n",
          {"sweep.yaml:3: seed: found 'x', expected a whole number from 0 to 9223372036854775807"});
    check(
        kBase + "exclude: [{seed: 42}]\n",
        {"sweep.yaml:3: exclude: found rules that leave no trial, expected rules that leave some"});
    check(kBase + "grid: {training.epochs: [1], training: {epochs: [2]}}\n",
          {"sweep.yaml:3: grid: found 'training.epochs' twice, expected it once (first in "
           "line 3)"});
    check(kBase + "grid: {task: [cola], tasks: [[rte]]}\n",
          {"sweep.yaml:3: grid: found 'tasks' twice, expected it once (first in line 3)"});
  }
  SECTION("of whole numbers that no database holds") {
    check(kBase + "grid: {seed: [9223372036854775807, 9223372036854775808, -1]}\n",
          {"sweep.yaml:3: seed: found -1, expected a whole number from 0 to 9223372036854775807",
           "sweep.yaml:3: seed: found 9223372036854775808, expected a whole number from 0 to "
           "9223372036854775807"});
    const std::string range =
        ", expected a whole number from -9223372036854775808 to 9223372036854775807, or a quoted "
        "text";
    check(kBase +
              "grid: {user.k: [9223372036854775807, -9223372036854775808, '9223372036854775808', "
              "1e30, 9223372036854775808, 18446744073709551616, -9223372036854775809]}\n",
          {"sweep.yaml:3: user.k: found -9.223372036854776e+18" + range,
           "sweep.yaml:3: user.k: found 1.8446744073709552e+19" + range,
           "sweep.yaml:3: user.k: found 9223372036854775808" + range});
    // Such values from an earlier petlab can still be read, so that its runs can be imported.
    CHECK(trial_config_from_json(nlohmann::json{{"seed", 18446744073709551615U}}).seed.value ==
          18446744073709551615U);
  }
  SECTION("of values") {
    check(kBase + "grid: {module.share: [yes]}\n",
          {"sweep.yaml:3: module.share: found 'yes', expected true or false"});
    check(
        kBase + "grid: {training.epochs: [2.0, 1e3, '3', -1, null, [1], {a: 1}]}\n",
        {"sweep.yaml:3: training.epochs: found '3', expected a whole number from 1 to 1000000000",
         "sweep.yaml:3: training.epochs: found -1, expected a whole number from 1 to 1000000000",
         "sweep.yaml:3: training.epochs: found 1000.0, expected a whole number from 1 to "
         "1000000000",
         "sweep.yaml:3: training.epochs: found 2.0, expected a whole number from 1 to 1000000000",
         "sweep.yaml:3: training.epochs: found a group of keys, expected a whole number from 1 to "
         "1000000000",
         "sweep.yaml:3: training.epochs: found a list, expected a whole number from 1 to "
         "1000000000",
         "sweep.yaml:3: training.epochs: found nothing, expected a whole number from 1 to "
         "1000000000"});
    check(kBase + "grid: {training.learning_rate: [.inf, -0.1, 0]}\n",
          {"sweep.yaml:3: training.learning_rate: found '.inf', expected a number > 0",
           "sweep.yaml:3: training.learning_rate: found -0.1, expected a number > 0",
           "sweep.yaml:3: training.learning_rate: found 0, expected a number > 0"});
    check(kBase + "grid: {module.mask: [lerned]}\n",
          {"sweep.yaml:3: module.mask: found 'lerned', expected none, learned or random"});
    check(kBase + "grid: {user.a: [[1]]}\n", {"sweep.yaml:3: user.a: found a list, expected text, "
                                              "a number, true, false or null (user is "
                                              "flat)"});
    check(kBase + "grid: {tasks: [[], [cola, cola], cola]}\n",
          {"sweep.yaml:3: tasks: found 'cola', expected a list of tasks",
           "sweep.yaml:3: tasks: found an empty list, expected a list of tasks"});
    check(kBase + "grid: {tasks: [[cola, cola], [rte]]}\n",
          {"sweep.yaml:3: tasks: found 'cola' twice, expected each task once"});
    check("sweep: t\nbase: {backbone: minilm, task: none.yaml}\n",
          {"sweep.yaml:2: task: found no declaration (none.yaml: cannot be read: No such file or "
           "directory), " +
           task_wanted});
  }
  SECTION("of combinations") {
    check(kBase + "variants:\n  full: {module.kind: full_finetuning, module.share: true}\n",
          {"sweep.yaml:4: module.share: found true, expected false with module.kind "
           "full_finetuning"});
    check(kBase +
              "variants:\n  a:\n    training.batch_size: 8\n"
              "    training.gradient_accumulation: 3\n",
          {"sweep.yaml:6: training.gradient_accumulation: found 3, expected a divisor of "
           "training.batch_size (8)"});
    check("sweep: t\ngrid: {seed: [1, 2]}\n",
          {"sweep.yaml:1: backbone: found nothing, expected the name of a folder under "
           "PETLAB_HOME/models, "
           "or a path with a slash",
           "sweep.yaml:1: task: found nothing, expected the name of a task"});
  }
  SECTION("of sizes to solve") {
    check(kBase +
              "variants:\n  a: {module.bottleneck: {match_storage_of: b}}\n"
              "  b: {module.bottleneck: {match_storage_of: a}}\n",
          {"sweep.yaml:4: module.bottleneck: found a cycle of match_storage_of (b -> a -> b), "
           "expected a variant whose sizes are written",
           "sweep.yaml:5: module.bottleneck: found a cycle of match_storage_of (a -> b -> a), "
           "expected a variant whose sizes are written"});
    check(
        kBase + "variants:\n  a: {module.bottleneck: {match_storage_of: a}}\n",
        {"sweep.yaml:4: module.bottleneck: found a cycle of match_storage_of (a -> a), expected a "
         "variant whose sizes are written"});
    check(kBase +
              "variants:\n  a: {module.bottleneck: {match_storage_of: b}}\n"
              "  b: {module.kind: head_only}\n",
          {"sweep.yaml:4: module.bottleneck: found match_storage_of b, whose module.kind is "
           "head_only, expected a variant with a storage formula"});
    check(
        "sweep: t\nbase: {backbone: minilm}\nvariants:\n"
        "  a: {task: cola, module.bottleneck: {match_storage_of: b}}\n  b: {}\n"
        "exclude: [{variant: b}]\n",
        {"sweep.yaml:4: module.bottleneck: found match_storage_of b, which has no task, expected a "
         "variant with both"});
    check(
        kBase + "variants:\n  a: {training.epochs: {match_storage_of: b}}\n  b: {}\n",
        {"sweep.yaml:4: training.epochs: found match_storage_of, expected a whole number from 1 to "
         "1000000000"});
    check(kBase +
              "variants:\n  a: {module.bottleneck: {match_storage_of: b}, module.mask: random, "
              "module.sparsity_ratio: {match_storage_of: b}}\n  b: {}\n",
          {"sweep.yaml:4: module.bottleneck: found match_storage_of, and for module.sparsity_ratio "
           "too, expected one size to solve"});
    check(kBase + "variants:\n  a: {module.bottleneck: {match_storage_of: b, or: 1}}\n  b: {}\n",
          {"sweep.yaml:4: module.bottleneck: found match_storage_of with other keys, expected "
           "{match_storage_of: VARIANT}"});
  }
}

TEST_CASE("Messages shorten long values", "[sweeps]") {
  const Home home;
  const std::string huge(1 << 20, 'x');
  for (const std::string& text :
       {"sweep: t\n" + huge + ": 1\n", "sweep: t\nbase: {" + huge + ": 1}\n",
        "sweep: t\nbase: {task: " + huge + "}\n", "sweep: t\nbase: {backbone: " + huge + "}\n",
        "sweep: t\nvariants: {a: !" + huge + " {}}\n"}) {
    for (const std::string& problem : home.problems(text)) CHECK(problem.size() < 2500);
  }
}

TEST_CASE("A missing or broken backbone is reported with its line", "[sweeps]") {
  const Home home;
  home.folder().write("models/broken/config.json", R"({"model_type":"gpt2"})");
  home.folder().write("models/empty/note.txt", "");
  const auto found = home.problems(
      "sweep: t\nbase: {task: cola}\ngrid:\n  backbone:\n    - minilmm\n    - broken\n    - empty\n"
      "    - ./nowhere\n");
  REQUIRE(found.size() == 4);
  CHECK(found[0] ==
        "sweep.yaml:5: backbone minilmm: the folder models/minilmm with config.json and weights "
        "does not exist; there are: broken, empty, minilm, roberta-base, nearest: minilm (move the "
        "folder with PETLAB_HOME; a name with a slash is a path)");
  CHECK(found[1] == "sweep.yaml:6: models/broken/config.json: model_type: found 'gpt2', expected " +
                        known_model_types());
  CHECK(found[2] ==
        "sweep.yaml:7: models/empty/config.json: cannot be read: No such file or directory");
  CHECK(found[3] ==
        "sweep.yaml:8: backbone nowhere: the folder nowhere with config.json and weights does not "
        "exist");
}

TEST_CASE("A refused name is explained, and a short word is guessed only by its initials",
          "[sweeps]") {
  const Home home;
  const std::string wanted =
      ", expected a name of 1 to 100 bytes without line breaks, tabs and other control characters";
  const std::string rest = "\nbase: {backbone: minilm, task: cola}\n";
  CHECK(home.problems("sweep: \"a\\tb\"" + rest) ==
        Strings{"sweep.yaml:1: sweep: found 'a\\tb'" + wanted});
  CHECK(home.problems("sweep: ''" + rest) == Strings{"sweep.yaml:1: sweep: found ''" + wanted});
  CHECK(home.problems("sweep: " + std::string(101, 'x') + rest) ==
        Strings{"sweep.yaml:1: sweep: found '" + std::string(57, 'x') + "…' (101 bytes)" + wanted});
  const auto guess = [&](const std::string& word) {
    return home.problems("sweep: t\nbase: {backbone: minilm, task: cola, " + word + ": 1}\n");
  };
  const std::string head = "sweep.yaml:2: base: found '";
  CHECK(guess("lr") == Strings{head + "lr', expected a field of a trial (nearest: "
                                      "training.learning_rate)"});
  CHECK(guess("bs") == Strings{head + "bs', expected a field of a trial (nearest: "
                                      "training.batch_size)"});
  CHECK(guess("set") == Strings{head + "set', expected a field of a trial"});
  CHECK(guess("best") == Strings{head + "best', expected a field of a trial"});
}

TEST_CASE("Unshared masks are refused for several tasks, even where a size is matched",
          "[sweeps]") {
  const Home home;
  const std::string base = "sweep: t\nbase: {backbone: minilm, tasks: [cola, rte]}\nvariants:\n";
  const std::string found =
      "module.share: found false, expected true with a mask and several tasks";
  CHECK(home.problems(base + "  a: {module.mask: learned}\n") == Strings{"sweep.yaml:2: " + found});
  CHECK(home.problems(base + "  a: {module.share: false, module.mask: random}\n") ==
        Strings{"sweep.yaml:4: " + found});
  // Although a is excluded, b would have to match it.
  CHECK(home.problems(base + "  a:\n    module.share: false\n    module.mask: learned\n"
                             "  b: {module.bottleneck: {match_storage_of: a}}\n"
                             "exclude: [{variant: a}]\n") == Strings{"sweep.yaml:5: " + found});
  CHECK(home.problems(base + "  a: {module.share: true, module.mask: learned}\n"
                             "  b: {module.mask: learned, module.share: false,\n"
                             "      module.bottleneck: {match_storage_of: a}}\n") ==
        Strings{"sweep.yaml:5: " + found});
  CHECK(home.load(base + "  a: {module.share: true, module.mask: learned}\n").trials.size() == 1);
}

TEST_CASE("A huge grid is refused before it is expanded", "[sweeps]") {
  const Home home;
  std::string list = "[0";
  for (int i = 1; i < 1000; ++i) list += ", " + std::to_string(i);
  list += "]";
  CHECK(home.problems(kBase + "grid:\n  seed: " + list + "\n  data.max_train_examples: " + list +
                      "\n  data.max_test_examples: [1, 2]\n") ==
        Strings{"sweep.yaml:6: the sweep: found more than 1000000 trials, expected fewer"});
}

TEST_CASE("Aliases are expanded, up to a limit", "[sweeps]") {
  const Home home;
  const Sweep sweep = home.load(
      "sweep: t\nbase: {backbone: minilm, task: cola}\n"
      "variants: {a: &x {module.bottleneck: 16}, b: *x}\ngrid: {seed: &s [1, 2]}\n");
  CHECK(sweep.trials.size() == 2);
  CHECK(sweep.trials[0].variants == Strings{"a", "b"});
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 12; ++i) {
    const std::string last = "*a" + std::to_string(i - 1);
    bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + last;
    for (int j = 1; j < 10; ++j) bomb += ", " + last;
    bomb += "]\n";
  }
  CHECK(home.problems(bomb) == Strings{"sweep.yaml:5: YAML: found more than 200000 values with "
                                       "aliases written out, expected fewer"});
  CHECK(home.problems("sweep: t\nbase: &b {user: *b}\n").size() >= 1);
  CHECK_FALSE(home.problems(std::string(100000, '[')).empty());
  CHECK_FALSE(home.problems(std::string(100000, '{')).empty());
  CHECK_FALSE(home.problems("sweep: \"a\\0b\"").empty());
  CHECK(home.problems("sweep: " + std::string(5 << 20, 'x')) ==
        Strings{"sweep.yaml:1: YAML: found 5242887 bytes, expected at most 4194304"});
}

TEST_CASE("A missing sweep file is a separate kind of error", "[sweeps]") {
  const Home home;
  CHECK_THROWS_AS(load_sweep(home.folder().path() / "none.yaml", home.locations()), Error);
  CHECK_THROWS_AS(load_sweep(home.folder().path(), home.locations()), Error);
}

TEST_CASE("A range of whole numbers equals their list", "[sweeps]") {
  const Home home;
  const auto ids = [&](const std::string& rest) {
    std::vector<std::string> all;
    for (const SweepTrial& trial : home.load(kBase + rest).trials) all.push_back(trial.id.value);
    return all;
  };
  CHECK(ids("grid: {seed: 1..3}\n") == ids("grid: {seed: [1, 2, 3]}\n"));
  CHECK(ids("grid: {seed: [7, 1..2]}\n") == ids("grid: {seed: [7, 1, 2]}\n"));
  CHECK(ids("zip: [{seed: 1..2, training.epochs: [3, 4]}]\n") ==
        ids("zip: [{seed: [1, 2], training.epochs: [3, 4]}]\n"));
  CHECK(ids("grid: {seed: 1..5}\nexclude: [{seed: 2..4}]\n") == ids("grid: {seed: [1, 5]}\n"));
  const auto refused = [&](const std::string& rest, const std::string& part) {
    CHECK_THROWS_WITH(ids(rest), petlab::testing::has_text(part));
  };
  refused("grid: {seed: '1..3'}\n", "seed: found '1..3', expected a list of values");
  refused("grid: {seed: 3..1}\n", "expected a list of values");
  refused("grid: {seed: 1..99999}\n", "1..99999 has more than 10000 numbers");
  refused("grid: {training.learning_rate: 1..3}\n", "expected a list of values");
}
