#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "sweeps/sweep_file.h"
#include "tests/support/catch.h"
#include "tests/support/programs.h"
#include "tests/sweeps/fixture.h"

using namespace petlab;
using namespace petlab::sweeps;
using petlab::sweeps::testing::Home;

namespace {

const std::filesystem::path kSweeps = petlab::testing::source_dir() / "sweeps";

std::vector<const SweepTrial*> trials_of(const Sweep& sweep, const std::string& variant) {
  std::vector<const SweepTrial*> found;
  for (const SweepTrial& trial : sweep.trials) {
    if (std::find(trial.variants.begin(), trial.variants.end(), variant) != trial.variants.end()) {
      found.push_back(&trial);
    }
  }
  return found;
}

}  // namespace

TEST_CASE("The quickstart sweep compares sharing and masking at equal storage", "[sweeps]") {
  const Home home;
  const Sweep sweep = load_sweep(kSweeps / "quickstart.yaml", home.locations());
  CHECK(sweep.trials.size() == 20 + 4);
  CHECK(sweep.notes.empty());
  // The figure's other sizes have one task and one seed.
  for (const std::string variant : {"vanilla_4", "vanilla_64", "propetl_4", "propetl_64"}) {
    CHECK(trials_of(sweep, variant).size() == 1);
  }
  const double propetl = *trials_of(sweep, "propetl").front()->bls_bits;
  for (const std::string variant : {"random", "only_share", "only_mask"}) {
    for (const SweepTrial* trial : trials_of(sweep, variant)) {
      CHECK(*trial->bls_bits == Approx(propetl).epsilon(0.03));
    }
  }
  for (const SweepTrial& trial : sweep.trials) {
    CHECK(trial.config.data.max_train_examples <= 1000);
  }
}

TEST_CASE("The GLUE example is planned without notes", "[sweeps]") {
  const Home home;
  const Sweep sweep = load_sweep(kSweeps / "glue-small.yaml", home.locations());
  CHECK(sweep.trials.size() == 4);
  CHECK(sweep.notes.empty());
}

TEST_CASE("The sweep of all modules has each of them vanilla and as ProPETL on each task",
          "[sweeps]") {
  const Home home;
  const Sweep sweep = load_sweep(kSweeps / "minilm-glue.yaml", home.locations());
  CHECK(sweep.trials.size() == 50);
  CHECK(sweep.notes.empty());
  for (const std::string kind : {"adapter", "lora", "prefix"}) {
    for (const std::string& variant : {kind, "propetl_" + kind}) {
      std::set<std::string> tasks;
      for (const SweepTrial* trial : trials_of(sweep, variant)) {
        CHECK(trial->config.module.kind == kind);
        CHECK(trial->config.module.share == (variant != kind));
        tasks.insert(trial->config.tasks.front());
      }
      CHECK(tasks == std::set<std::string>{"cola", "mrpc", "rte", "sst2", "stsb"});
    }
  }
  CHECK(trials_of(sweep, "random_adapter").size() == 6);  // two tasks, three seeds
}

TEST_CASE("The sweep of compute types has each trial in float32 and in bfloat16", "[sweeps]") {
  const Home home;
  const Sweep sweep = load_sweep(kSweeps / "minilm-compute.yaml", home.locations());
  CHECK(sweep.trials.size() == 24);
  CHECK(sweep.notes.empty());
  std::map<ComputeType, std::size_t> trials;
  for (const SweepTrial& trial : sweep.trials) ++trials[trial.config.training.compute];
  CHECK(trials ==
        std::map<ComputeType, std::size_t>{{ComputeType::float32, 12}, {ComputeType::bf16, 12}});
}

TEST_CASE("The documentation's example is a valid sweep", "[sweeps]") {
  const Home home;
  std::ifstream in(petlab::testing::source_dir() / "docs/reference/sweep-files.md");
  std::stringstream page;
  page << in.rdbuf();
  const std::string text = page.str();
  const std::string fence = "```yaml\n";
  const std::size_t begin = text.find(fence) + fence.size();
  const Sweep sweep = home.load(text.substr(begin, text.find("```", begin) - begin));
  CHECK(sweep.trials.size() == 56);
  // The grid is over the bottleneck, so storage is equal at each grid point.
  std::map<std::int64_t, double> propetl;
  for (const SweepTrial* trial : trials_of(sweep, "propetl")) {
    propetl[trial->config.module.bottleneck] = *trial->bls_bits;
  }
  CHECK(propetl.size() == 2);
  for (const std::string variant : {"random", "only_share", "only_mask"}) {
    std::set<double> near;
    for (const SweepTrial* trial : trials_of(sweep, variant)) {
      for (const auto& [bottleneck, bits] : propetl) {
        if (std::abs(*trial->bls_bits / bits - 1) < 0.05) near.insert(bits);
      }
    }
    INFO(variant);
    CHECK(near.size() == 2);
  }
}

namespace {

Sweep paper(const Home& home, const std::string& name) {
  return load_sweep(kSweeps / "paper" / (name + ".yaml"), home.locations());
}

std::set<std::string> ids(const Sweep& sweep) {
  std::set<std::string> all;
  for (const SweepTrial& trial : sweep.trials) all.insert(trial.id.value);
  return all;
}

std::size_t common(const Sweep& a, const Sweep& b) {
  const std::set<std::string> of_b = ids(b);
  std::size_t n = 0;
  for (const std::string& id : ids(a)) n += of_b.count(id);
  return n;
}

}  // namespace

TEST_CASE("The paper's sweeps have its rows, tasks and seeds, and share trials", "[sweeps]") {
  const Home home;
  const Sweep table1 = paper(home, "table1");
  const Sweep table4 = paper(home, "table4");
  const Sweep table5 = paper(home, "table5");
  const Sweep table8 = paper(home, "table8");
  const Sweep table13 = paper(home, "table13");
  const Sweep figure4 = paper(home, "figure4");
  for (const Sweep* sweep : {&table1, &table4, &table5, &table8, &table13, &figure4}) {
    INFO(sweep->name);
    CHECK(sweep->notes.empty());
    for (const SweepTrial& trial : sweep->trials) {
      const TrialConfig& config = trial.config;
      const TaskDeclaration& task = sweep->tasks.at(config.tasks.at(0));
      CHECK(config.training.epochs == (task.split == SplitRule::glue_large ? 10 : 20));
      CHECK(config.training.batch_size == 128);
    }
  }
  CHECK(table1.trials.size() == 7 * 8 * 3);
  CHECK(table4.trials.size() == 15 * 8 * 3);
  CHECK(table5.trials.size() == 6 * 8 * 3);
  CHECK(table8.trials.size() == 3 * 8 * 3);
  CHECK(table13.trials.size() == 15 * 8 * 3);
  CHECK(figure4.trials.size() == 30 * 8 * 3);
  CHECK(common(table8, table1) == table8.trials.size());
  CHECK(common(table4, table1) == 3 * 24);    // propetl
  CHECK(common(table5, table1) == 3 * 24);    // vanilla
  CHECK(common(table13, table4) == 12 * 24);  // all except random
  CHECK(common(table13, table5) == 3 * 24);   // pruned is only_mask at equal k and bn
  CHECK(common(figure4, table1) == 3 * 24);   // k = 0.5
}

namespace {

/// A home that also has backbones with the shapes of T5-base and T5-3B.
struct PaperHome : Home {
  PaperHome() {
    t5_backbone("t5-base", 768, 12, 12, 64, 3072);
    t5_backbone("t5-3b", 1024, 24, 32, 128, 16384);
  }
};

nlohmann::json published(const std::string& table) {
  const std::string text =
      petlab::testing::read_file(petlab::testing::source_dir() / "reports/published.json");
  return nlohmann::json::parse(text).at("tables").at(table);
}

}  // namespace

TEST_CASE("The paper's sweeps of T5 have its rows, and share trials", "[sweeps]") {
  const PaperHome home;
  const Sweep table2 = paper(home, "table2");
  const Sweep table3 = paper(home, "table3");
  const Sweep table4 = paper(home, "table4-ro-en");
  const Sweep table11 = paper(home, "table11");
  const Sweep table13 = paper(home, "table13-ro-en");
  const Sweep table14 = paper(home, "table14");
  const Sweep table15 = paper(home, "table15");
  const Sweep table16 = paper(home, "table16");
  for (const Sweep* sweep : {&table3, &table4, &table11, &table13, &table14, &table15, &table16}) {
    INFO(sweep->name);
    CHECK(sweep->notes.empty());
  }
  // Table 2 has a note that its multi-task rows ignore the list of single tasks.
  REQUIRE(table2.notes.size() == 1);
  CHECK(table2.notes[0].find(
            "the values of task change nothing for hyperformer, full_finetuning, "
            "adapter_64, adapter_6, propetl_adapter_64, propetl_adapter_6, which set their "
            "own") != std::string::npos);
  CHECK(table2.trials.size() == 2 * 8 * 3 + 6 * 3);
  CHECK(table3.trials.size() == 3 * 3);
  CHECK(table4.trials.size() == 5);
  CHECK(table11.trials.size() == 3 * 3);
  CHECK(table13.trials.size() == 5);
  CHECK(table14.trials.size() == 1 + 7 + 7);
  CHECK(table15.trials.size() == 1 + 8 + 7);
  CHECK(table16.trials.size() == 3 * (1 + 11 + 14));
  CHECK(common(table11, table2) == 3);      // OR is plain ProPETL
  CHECK(common(table16, table2) == 5 * 3);  // multi-task rows of table 2 except the hypernetwork
  CHECK(common(table13, table4) == 4);      // all except random
  CHECK(common(table15, table4) == 1);      // ProPETL with a bottleneck of 384
  CHECK(common(table14, table15) == 0);
  // The number of all trials, including RoBERTa's, with and without repetitions.
  std::set<std::string> all;
  std::size_t sum = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kSweeps / "paper")) {
    const std::set<std::string> of_sweep = ids(load_sweep(entry.path(), home.locations()));
    sum += of_sweep.size();
    all.insert(of_sweep.begin(), of_sweep.end());
  }
  CHECK(sum == 1824 + 203);
  CHECK(all.size() == 1176 + 180);
}

TEST_CASE("The sweeps have the settings of table 10", "[sweeps]") {
  const PaperHome home;
  const nlohmann::json table = published("table10");
  const std::map<std::string, std::string> columns = {
      {"xsum", "table14"}, {"ro-en", "table15"}, {"glue", "table16"}};
  for (std::size_t i = 0; i < table.at("columns").size(); ++i) {
    const std::string column = table.at("columns").at(i);
    const auto printed = [&](const char* row) {
      return table.at("rows").at(row).at(i).get<double>();
    };
    INFO(column);
    for (const SweepTrial& trial : paper(home, columns.at(column)).trials) {
      const TrainingConfig& training = trial.config.training;
      CHECK(static_cast<double>(training.batch_size) == printed("batch_size"));
      CHECK(static_cast<double>(training.steps) == printed("total_steps"));
      CHECK(training.learning_rate == printed("learning_rate"));
      CHECK(training.mask_learning_rate == printed("mask_learning_rate"));
      CHECK(training.mask_learning_rate == Approx(10 * training.learning_rate));
      CHECK(training.label_smoothing == printed("label_smoothing"));
      CHECK(training.weight_decay == printed("weight_decay"));
      CHECK(training.warmup_steps == 500);
    }
  }
}

TEST_CASE("The paper's sweeps of T5 have the printed storage", "[sweeps]") {
  const PaperHome home;
  for (const std::string name : {"table14", "table15", "table16"}) {
    const Sweep sweep = paper(home, name);
    const std::int64_t parameters = sweep.backbone_shapes.at("t5-base").parameters();
    CHECK(parameters == 222903552);
    std::map<std::string, double> measured;
    for (const SweepTrial& trial : sweep.trials) {
      if (!trial.bls_bits) continue;
      measured[trial.variants.at(0)] = metrics::bls_percent(*trial.bls_bits, parameters) /
                                       static_cast<double>(trial.config.tasks.size());
    }
    std::size_t rows = 0;
    const nlohmann::json printed_rows = published(name).at("rows");
    for (const auto& [row, values] : printed_rows.items()) {
      // Two sizes are misprinted: their storage belongs to 768 and 3072 (reference/method.md).
      std::string variant = row == "adapter bn=769"            ? "adapter bn=768"
                            : row == "propetl_adapter bn=3042" ? "propetl_adapter bn=3072"
                                                               : row;
      variant.replace(variant.find(" bn="), 4, "_");
      INFO(name << " " << variant);
      const double printed = values.at(0);
      CHECK(measured.at(variant) == Approx(printed).margin(printed < 0.001 ? 5.1e-5
                                                           : printed < 10  ? 5.1e-4
                                                                           : 5.1e-3));
      ++rows;
    }
    CHECK(rows == measured.size());
  }
}

TEST_CASE("Table 2's hypernetwork has the printed storage", "[sweeps]") {
  const PaperHome home;
  const Sweep sweep = paper(home, "table2");
  const std::vector<const SweepTrial*> trials = trials_of(sweep, "hyperformer");
  REQUIRE(trials.size() == 3);
  for (const SweepTrial* trial : trials) {
    CHECK(trial->config.tasks.size() == 8);
    CHECK(metrics::trained_parameters(*trial->storage) == 5163440);
    const std::int64_t parameters = sweep.backbone_shapes.at("t5-base").parameters();
    const nlohmann::json printed =
        published("table2").at("rows").at("multi-task hypernetwork hyperformer++");
    CHECK(metrics::bls_percent(*trial->bls_bits, parameters, 8) ==
          Approx(printed.at(1).get<double>()).margin(0.0051));
  }
}

TEST_CASE("The paper's sweeps have the printed storage, except errata", "[sweeps]") {
  const Home home;
  const auto percent = [&](const Sweep& sweep, const std::string& variant) {
    const std::int64_t parameters = sweep.backbone_shapes.at("roberta-base").parameters();
    return metrics::bls_percent(*trials_of(sweep, variant).at(0)->bls_bits, parameters);
  };
  const Sweep table1 = paper(home, "table1");
  for (const std::string variant : {"prefix", "lora", "adapter"}) {
    CHECK(percent(table1, variant) == Approx(0.95).margin(0.005));
    CHECK(percent(table1, "propetl_" + variant) == Approx(0.11).margin(0.005));
  }
  const Sweep table13 = paper(home, "table13");
  const std::map<std::string, double> printed = {
      {"propetl_adapter", 0.11},
      {"only_mask_same_bn_adapter", 0.11},
      {"only_mask_same_k_adapter", 0.11},
      {"only_mask_same_k_and_bn_adapter", 0.48},
      {"only_share_adapter", 0.11},
      {"propetl_prefix", 0.11},
      {"only_mask_same_bn_prefix", 0.142},  // printed 0.11: an erratum
      {"only_mask_same_k_prefix", 0.11},
      {"only_mask_same_k_and_bn_prefix", 0.473},  // printed 0.48: an erratum
      {"only_share_prefix", 0.11},
      {"propetl_lora", 0.11},
      {"only_mask_same_bn_lora", 0.142},        // printed 0.11: an erratum
      {"only_mask_same_k_lora", 0.118},         // likewise
      {"only_mask_same_k_and_bn_lora", 0.473},  // printed 0.48: an erratum
      {"only_share_lora", 0.11},
  };
  for (const auto& [variant, value] : printed) {
    INFO(variant);
    CHECK(percent(table13, variant) == Approx(value).margin(value < 0.115 ? 0.005 : 0.0051));
  }
}
