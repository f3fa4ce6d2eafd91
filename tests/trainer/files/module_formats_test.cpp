#include "trainer/artifact/module_formats.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "sweeps/catalog.h"
#include "tests/support/catch.h"
#include "tests/support/golden.h"
#include "tests/support/storage_formula.h"
#include "trainer/artifact/foreign_module.h"
#include "trainer/files/error.h"

using namespace petlab::trainer;
using petlab::metrics::MaskKind;
using petlab::metrics::ModuleStorage;
using petlab::testing::formula_of;

namespace {

/// A shared adapter with 2 layers, d_model 2 and bottleneck 1, with masks for layers and for two
/// tasks. Its weights are 1, 2, 3, …
Artifact hybrid_artifact() {
  Artifact artifact;
  artifact.module = ModuleStorage{formula_of("adapter"), 2, 2, 1, true, MaskKind::learned, 0.5, 2};
  artifact.values = {{"down.weight", {1, 2}, {1, 2}},
                     {"down.bias", {1}, {3}},
                     {"up.weight", {2, 1}, {4, 5}},
                     {"up.bias", {2}, {6, 7}}};
  artifact.masks = {{"down.weight.mask", {2, 1, 2}, {1, 0, 0, 1}},
                    {"down.weight.task_mask", {2, 1, 2}, {1, 0, 0, 1}},
                    {"up.weight.mask", {2, 2, 1}, {1, 0, 0, 1}},
                    {"up.weight.task_mask", {2, 2, 1}, {0, 1, 1, 0}}};
  for (const std::string task : {"films", "plots"}) {
    artifact.labels[task] = {"no", "yes"};
    artifact.head.push_back({task + ".dense.weight", {2, 2}, {1, 2, 3, 4}});
    artifact.head.push_back({task + ".dense.bias", {2}, {5, 6}});
    artifact.head.push_back({task + ".out_proj.weight", {2, 2}, {7, 8, 9, 10}});
    artifact.head.push_back({task + ".out_proj.bias", {2}, {11, 12}});
  }
  return artifact;
}

petlab::sweeps::TrialConfig hybrid_config() {
  petlab::sweeps::TrialConfig config = petlab::sweeps::default_config("adapter");
  config.tasks = {"films", "plots"};
  config.module.bottleneck = 1;
  config.module.share = true;
  config.module.mask = MaskKind::learned;
  return config;
}

}  // namespace

TEST_CASE("A layer has the prototype's weights where its mask or the task's is 1", "[trainer]") {
  const Artifact artifact = hybrid_artifact();
  const LayeredModule films = layered_module(artifact, hybrid_config(), "films");
  CHECK(films.weights.at("down.weight").values == std::vector<float>{1, 0, 1, 2});
  CHECK(films.weights.at("up.weight").values == std::vector<float>{4, 5, 0, 5});
  CHECK(films.weights.at("down.bias").values == std::vector<float>{3, 3});
  CHECK(films.weights.at("up.bias").values == std::vector<float>{6, 7, 6, 7});
  const LayeredModule plots = layered_module(artifact, hybrid_config(), "plots");
  CHECK(plots.weights.at("down.weight").values == std::vector<float>{1, 2, 0, 2});
  CHECK(plots.weights.at("up.weight").values == std::vector<float>{4, 0, 4, 5});
  CHECK(plots.head.task == "plots");
  CHECK_THROWS_WITH(layered_module(artifact, hybrid_config(), ""),
                    "the artifact has 2 tasks: name one of films, plots with --task");
}

TEST_CASE("module.combine decides how a layer's mask and a task's are combined", "[trainer]") {
  const Artifact artifact = hybrid_artifact();
  petlab::sweeps::TrialConfig config = hybrid_config();
  const auto down_and_up = [&](petlab::metrics::MaskCombination combine) {
    config.module.combine = combine;
    const LayeredModule films = layered_module(artifact, config, "films");
    return std::pair(films.weights.at("down.weight").values, films.weights.at("up.weight").values);
  };
  using Values = std::vector<float>;
  using petlab::metrics::MaskCombination;
  CHECK(down_and_up(MaskCombination::or_) == std::pair(Values{1, 0, 1, 2}, Values{4, 5, 0, 5}));
  CHECK(down_and_up(MaskCombination::and_) == std::pair(Values{1, 0, 0, 0}, Values{0, 0, 0, 5}));
  CHECK(down_and_up(MaskCombination::add) == std::pair(Values{2, 0, 1, 2}, Values{4, 5, 0, 10}));
}

TEST_CASE("A mask or weight with another shape than the module's is refused", "[trainer]") {
  Artifact artifact = hybrid_artifact();
  artifact.masks[1].shape = {1, 2, 2};
  CHECK_THROWS_WITH(layered_module(artifact, hybrid_config(), "films"),
                    "the artifact's tensor down.weight.task_mask has the shape [1, 2, 2], must be "
                    "[2, 1, 2]");
  artifact = hybrid_artifact();
  artifact.values.erase(artifact.values.begin() + 2);
  CHECK_THROWS_WITH(layered_module(artifact, hybrid_config(), "films"),
                    "the artifact has no tensor up.weight");
}

TEST_CASE("An artifact whose module differs from its configuration is refused", "[trainer]") {
  struct Case {
    const char* found_and_wanted;
    void (*change)(ModuleStorage&);
  };
  for (const Case& one :
       {Case{"family is lora, must be adapter", [](auto& m) { m.formula = formula_of("lora"); }},
        Case{"size is 2, must be 1", [](auto& m) { m.size = 2; }},
        Case{"share is false, must be true", [](auto& m) { m.share = false; }},
        Case{"mask is random, must be learned", [](auto& m) { m.mask = MaskKind::random; }},
        // The second task's mask would be out of range.
        Case{"tasks is 1, must be 2", [](auto& m) { m.tasks = 1; }}}) {
    Artifact artifact = hybrid_artifact();
    one.change(*artifact.module);
    artifact.masks[1] = {"down.weight.task_mask", {1, 1, 2}, {1, 0}};
    CHECK_THROWS_WITH(
        layered_module(artifact, hybrid_config(), "plots"),
        std::string("the artifact's module.") + one.found_and_wanted + ", as its config has it");
  }
  petlab::sweeps::TrialConfig config = hybrid_config();
  config.module.kind = "head_only";
  CHECK_THROWS_WITH(layered_module(hybrid_artifact(), config, "films"),
                    "the artifact's module.family is adapter, must be head_only, as its config "
                    "has it");
}

TEST_CASE("Generated adapters cannot be exported because their layers store no weights",
          "[trainer]") {
  petlab::sweeps::TrialConfig config = petlab::sweeps::default_config("hyperformer++");
  config.tasks = {"films", "plots"};
  Artifact artifact;
  artifact.module = ModuleStorage{formula_of("hyperformer++"), 2, 2, 24};
  artifact.module->tasks = 2;
  artifact.module->other_sizes = {64, 128, 64};
  CHECK_THROWS_WITH(layered_module(artifact, config, "films"),
                    "module.kind is hyperformer++, whose hypernetwork generates the layers' "
                    "weights: other libraries store the layers' weights themselves");
}

TEST_CASE("A module that does not fit the backbone is not exported", "[trainer]") {
  const LayeredModule module = layered_module(hybrid_artifact(), hybrid_config(), "films");
  petlab::sweeps::BackboneShape encoder;
  encoder.model_type = "bert";
  encoder.d_model = 2;
  encoder.encoder_layers = 3;
  CHECK_THROWS_WITH(module_files(module_format("adapterhub"), module, encoder, "tiny"),
                    "tiny: the backbone has 3 layers of 2, must have the module's 2 of 2");
  encoder.model_type = "modernbert";
  CHECK_THROWS_WITH(module_files(module_format("adapterhub"), module, encoder, "tiny"),
                    "tiny: model_type is modernbert, must be one of these with --format "
                    "adapterhub: bert roberta");
}

TEST_CASE("A configuration nested too deep is refused", "[trainer]") {
  const auto nested = [](int levels) {
    const auto n = static_cast<std::size_t>(levels - 1);
    return "{\"a\":" + std::string(n, '[') + std::string(n, ']') + "}";
  };
  CHECK(ForeignConfig::parse(nested(64), "c.json").all().contains("a"));
  for (const int levels : {65, 100000}) {
    CHECK_THROWS_WITH(ForeignConfig::parse(nested(levels), "c.json"),
                      "c.json: must have at most 64 levels of nesting");
  }
  CHECK_THROWS_WITH(ForeignConfig::parse("{\"a\":" + std::string(100000, '['), "c.json"),
                    "c.json: must have at most 64 levels of nesting");
}

TEST_CASE("Modules that the libraries saved are read, stored as artifacts and written unchanged",
          "[trainer][golden][wide]") {
  const auto found_golden = petlab::testing::golden("petl");
  if (!found_golden) return;
  const std::filesystem::path& golden = *found_golden;
  for (const auto& [format, folder] : {std::pair{"peft", "lib_lora_roberta_a8/peft_checkpoint"},
                                       {"peft", "lib_lora_roberta_a12/peft_checkpoint"},
                                       {"peft", "lib_lora_modernbert/peft_checkpoint"},
                                       {"adapterhub", "lib_adapter_roberta/library_checkpoint"}}) {
    INFO(folder);
    const bool modern = std::string(folder).find("modernbert") != std::string::npos;
    const ModuleBackbone backbone =
        open_module_backbone(golden / (modern ? "backbone_modernbert" : "backbone_roberta"));
    LayeredModule module = read_module(module_format(format), golden / folder, backbone);
    CHECK(module.size == (modern ? 2 : 8));
    if (modern) CHECK(module.alpha == 3);
    CHECK(module.head.outputs() == 3);
    module.head.task = "films";
    const Artifact artifact = unshared_artifact(module, "tiny", 40);
    const Artifact again = parse_artifact(artifact_bytes(artifact), "again");
    const auto config = petlab::sweeps::trial_config_from_json(nlohmann::json::parse(again.config));
    const LayeredModule same = layered_module(again, config, "");
    CHECK(same.alpha == (std::string(format) == "peft" ? module.alpha : config.module.alpha));
    for (const auto& [name, weight] : module.weights) {
      CHECK(same.weights.at(name).values == weight.values);
    }
    // Compares with the tensors that the library saved, by name.
    const auto files = module_files(module_format(format), same, backbone.shape, "tiny");
    StoredWeights saved = open_weights_file(
        golden / folder /
        (std::string(format) == "peft" ? "adapter_model.safetensors" : "adapter.safetensors"));
    for (const auto& [name, entry] : saved.tensors) {
      INFO(name);
      // petlab names an adapter after its task; the golden one is named petl.
      std::string ours = name;
      const auto at = ours.find("adapters.petl.");
      if (at != std::string::npos) ours.replace(at, 13, "adapters.films");
      const auto found = std::find_if(files[0].tensors.begin(), files[0].tensors.end(),
                                      [&](const auto& tensor) { return tensor.name == ours; });
      REQUIRE(found != files[0].tensors.end());
      CHECK(found->shape == entry.tensor.shape);
      CHECK(found->values == to_floats(entry.tensor));
    }
  }
}
