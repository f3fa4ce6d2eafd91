#include <nlohmann/json.hpp>
#include <string>

#include "metrics/published_backbones.h"
#include "protocol/artifact_format.h"
#include "tests/support/catch.h"
#include "tests/support/programs.h"
#include "tests/support/storage_formula.h"
#include "tests/support/temp_dir.h"

using petlab::testing::CommandResult;
using petlab::testing::run_command;
using petlab::testing::TempDir;

namespace {

// Runs `petlab storage ARGUMENTS` in the folder, which is PETLAB_HOME too.
CommandResult storage(const TempDir& dir, const std::string& arguments) {
  return run_command("cd '" + dir.path().string() + "' && PETLAB_HOME=$PWD '" +
                     petlab::testing::program("petlab").string() + "' storage " + arguments);
}

nlohmann::json json_of(const TempDir& dir, const std::string& arguments) {
  const CommandResult result = storage(dir, arguments + " --json");
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  return nlohmann::json::parse(result.out);
}

void check_storage_refuses(const TempDir& dir, const std::string& arguments, int exit_code,
                           const std::string& message) {
  INFO(arguments);
  const CommandResult result = storage(dir, arguments);
  CHECK(result.err == "petlab: " + message + "\n");
  CHECK(result.exit_code == exit_code);
}

// The sizes of the three backbones of the paper.
const char* const kRobertaBase = R"({"model_type": "roberta", "hidden_size": 768,
  "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 3072,
  "vocab_size": 50265, "max_position_embeddings": 514, "type_vocab_size": 1})";
const char* const kT5Base = R"({"model_type": "t5", "d_model": 768, "num_layers": 12,
  "num_heads": 12, "d_kv": 64, "d_ff": 3072, "vocab_size": 32128})";
const char* const kT53b = R"({"model_type": "t5", "d_model": 1024, "num_layers": 24,
  "num_heads": 32, "d_kv": 128, "d_ff": 16384, "vocab_size": 32128})";

}  // namespace

TEST_CASE("petlab storage prints bits, formula and percentage of a configuration", "[cli]") {
  const TempDir dir;
  const CommandResult result =
      storage(dir, "--kind adapter --bottleneck 64 --share --mask learned --backbone roberta-base");
  CHECK(result.err.empty());
  CHECK(result.exit_code == 0);
  CHECK(result.out ==
        "module              adapter, bottleneck 64, share true, mask learned, sparsity_ratio 0.5\n"
        "backbone            roberta-base, d_model 768, 12 layers, 124645632 parameters\n"
        "formula             32·(2·bn·d + bn + d) + 2·bn·d·L\n"
        "bls_bits            4352000 (values 3172352, masks 1179648)\n"
        "stored_bits         4352000 (values 3172352, masks 1179648)\n"
        "trained_parameters  1278784\n"
        "bls_percent         0.1091\n");
  const auto json = json_of(
      dir, "--kind lora --rank 32 --mask learned --sparsity-ratio 0.15 --backbone roberta-base");
  CHECK(json.at("bls_bits").get<double>() == Approx(5662310.4).epsilon(1e-12));
  CHECK(json.at("stored_bits") == 5663232);
  CHECK(json.at("stored_parts") == nlohmann::json({{"values", 5663232}, {"masks", 0}}));
  CHECK(json.at("formula") == "32·4·k·r·d·L");
  CHECK(json.at("bls_percent").get<double>() == Approx(0.14196020924343342));
}

TEST_CASE("petlab storage also supports training without a module", "[cli]") {
  const TempDir dir;
  const auto full = json_of(dir, "--kind full_finetuning --backbone t5-base --tasks 8");
  CHECK(full.at("bls_percent") == 100.0);
  CHECK(full.at("bls_percent_per_task") == 12.5);
  const auto hyperformer = json_of(dir, "--kind hyperformer++ --backbone t5-base");
  CHECK(hyperformer.at("trained_parameters") == 5163440);
  CHECK(hyperformer.at("bls_percent_per_task").get<double>() == Approx(0.28956).epsilon(1e-4));
  CHECK(hyperformer.at("stored_bits") == 32 * 5163440);
  CHECK(hyperformer.at("module") == nlohmann::json({{"kind", "hyperformer++"},
                                                    {"bottleneck", 24},
                                                    {"hyper_embedding", 64},
                                                    {"hyper_hidden", 128},
                                                    {"hyper_projected", 64},
                                                    {"d_model", 768},
                                                    {"layers", 24},
                                                    {"tasks", 8}}));
  const auto smaller = json_of(dir,
                               "--kind hyperformer++ --backbone t5-base --tasks 2 --bottleneck "
                               "8 --hyper-embedding 16 --hyper-hidden 32 --hyper-projected 8");
  CHECK(smaller.at("trained_parameters") ==
        (2 + 28) * 16 + 2 * (49 * 32 + 33 * 8 + 16 + 9 * (2 * 8 * 768 + 8 + 3 * 768)));
  dir.write("hyper.yaml", "backbone: t5-base\nmodule.kind: hyperformer++\ntasks: [cola, rte]\n");
  CHECK(json_of(dir, "hyper.yaml").at("trained_parameters") == 5163440 - 6 * 64);
  CHECK(json_of(dir, "--kind head_only --backbone t5-base").at("bls_bits") == 0);
}

TEST_CASE("petlab storage reads configurations in YAML and JSON, nested or dotted", "[cli]") {
  const TempDir dir;
  dir.write("a.yaml",
            "backbone: t5-base\ntasks: [cola, rte, mrpc]\nmodule: {kind: adapter, bottleneck: 6, "
            "share: true, mask: learned, sparsity_ratio: 0.3}\ntraining: {epochs: 2}\n");
  const auto nested = json_of(dir, "a.yaml");
  const double weights = 2 * 6 * 768;
  CHECK(nested.at("bls_bits").get<double>() == 32 * (weights + 6 + 768) + weights * (24 + 3));
  dir.write("b.yml",
            "backbone: t5-base\ntasks: [cola, rte, mrpc]\nmodule.kind: adapter\n"
            "module.bottleneck: 6\nmodule.share: true\nmodule.mask: learned\n"
            "module.sparsity_ratio: 0.3\n");
  CHECK(json_of(dir, "b.yml") == nested);
  dir.write("trial.json", R"({"v": 1, "trial": "4f", "config": {"backbone": "t5-base",
    "tasks": ["cola", "rte", "mrpc"], "module": {"kind": "adapter", "bottleneck": 6,
    "share": true, "mask": "learned", "sparsity_ratio": 0.3}}})");
  CHECK(json_of(dir, "trial.json") == nested);
  CHECK(json_of(dir, "trial.json --tasks 8").at("module").at("tasks") == 8);
}

TEST_CASE("petlab storage reads numbers as sweeps do", "[cli]") {
  const TempDir dir;
  const auto bottleneck = [&](const std::string& written) {
    dir.write("a.yaml",
              "backbone: t5-base\nmodule: {kind: adapter, bottleneck: " + written + "}\n");
    return json_of(dir, "a.yaml").at("module").at("bottleneck");
  };
  CHECK(bottleneck("010") == 10);
  CHECK(bottleneck("8") == 8);
  dir.write("a.yaml", "backbone: t5-base\nmodule: 3\nmodule.kind: adapter\n");
  check_storage_refuses(dir, "a.yaml", 2, "a.yaml: module is 3, expected a group of keys");
  dir.write("a.yaml", "backbone: t5-base\nmodule: {kind: adapter}\nmodule: {kind: lora}\n");
  CHECK(storage(dir, "a.yaml").exit_code == 2);
}

TEST_CASE("The config.json of a backbone gives the paper's parameter counts", "[cli]") {
  const TempDir dir;
  dir.write("models/roberta-base/config.json", kRobertaBase);
  dir.write("models/t5-base/config.json", kT5Base);
  dir.write("models/t5-3b/config.json", kT53b);
  for (const auto& backbone : petlab::metrics::published_backbones()) {
    const std::string name(backbone.name);
    INFO(name);
    for (const std::string& given : {name, "./models/" + name}) {
      const auto json = json_of(dir, "--kind prefix --backbone " + given).at("backbone");
      CHECK(json.at("parameters") == backbone.parameters);
      CHECK(json.at("layers") == backbone.layers());
      CHECK(json.at("d_model") == backbone.d_model);
    }
  }
}

TEST_CASE("petlab storage shows an artifact as published and as stored", "[cli]") {
  const TempDir dir;
  petlab::metrics::ModuleStorage module;
  module.formula = petlab::testing::formula_of("adapter");
  module.d_model = 4;
  module.layers = 3;
  module.size = 2;
  module.share = true;
  module.mask = petlab::metrics::MaskKind::learned;
  const std::string header = nlohmann::json{
      {"trial", "4f1c"},
      {"config", {{"backbone", "tiny"}}},
      {"module", petlab::protocol::to_json(
                     module)}}.dump();
  // 22 values, 16 mask bits per layer, and a head.
  const std::string values(22 * 4, 'v');
  const std::string masks(48 / 8, 'm');
  const std::string head(5 * 4, 'h');
  const std::string bytes = petlab::protocol::make_artifact_container(
      header, {{petlab::protocol::ArtifactSectionKind::values, 22 * 32, values},
               {petlab::protocol::ArtifactSectionKind::masks, 48, masks},
               {petlab::protocol::ArtifactSectionKind::head, 160, head}});
  dir.write("artifact.petl", bytes);
  const auto json = json_of(dir, "artifact.petl");
  CHECK(json.at("bls_bits") == 22 * 32 + 48);
  CHECK(json.at("bls_parts") == nlohmann::json({{"values", 704}, {"masks", 48}}));
  CHECK(json.at("stored_bits") == 22 * 32 + 48);
  CHECK(json.at("stored_parts") == nlohmann::json({{"values", 704}, {"masks", 48}}));
  CHECK(json.at("not_counted") == nlohmann::json({{"positions", 0}, {"head", 160}}));
  CHECK(json.at("file_bytes") == bytes.size());
  CHECK(json.at("module").at("trial") == "4f1c");
  const CommandResult text = storage(dir, "artifact.petl");
  CHECK(text.out.find("stored_bits         752 (values 704, masks 48)\n") != std::string::npos);
  CHECK(text.out.find("not counted         positions 0, head 160 (bits)\n") != std::string::npos);

  dir.write("damaged.petl", bytes.substr(0, bytes.size() - 3));
  const CommandResult damaged = storage(dir, "damaged.petl");
  CHECK(damaged.exit_code == 1);
  CHECK(damaged.err.find("damaged.petl") != std::string::npos);
  check_storage_refuses(dir, "artifact.petl --tasks 2", 2,
                        "--tasks does not apply to an artifact, which contains its tasks");
}

TEST_CASE("petlab storage refuses invalid arguments and configurations", "[cli]") {
  const TempDir dir;
  check_storage_refuses(
      dir, "", 2, "storage needs an artifact, a configuration file, or --kind with its options");
  check_storage_refuses(
      dir, "--kind adapter", 2,
      "storage of a configuration requires --backbone, or --d-model and --layers");
  check_storage_refuses(
      dir, "--kind adaptor --backbone t5-base", 2,
      "module.kind is 'adaptor', must be adapter, lora, prefix, full_finetuning, head_only or "
      "hyperformer++");
  check_storage_refuses(dir, "--kind adapter --bottleneck 0 --backbone t5-base", 2,
                        "module.bottleneck is 0, must be a whole number from 1 to 1048576");
  check_storage_refuses(dir, "--kind adapter --rank 3 --backbone t5-base", 2,
                        "--rank does not apply to kind adapter with mask none");
  check_storage_refuses(dir, "--kind adapter --sparsity-ratio 0.5 --backbone t5-base", 2,
                        "--sparsity-ratio does not apply to kind adapter with mask none");
  check_storage_refuses(dir, "--kind hyperformer++ --share --backbone t5-base", 2,
                        "module.share is true, must be false with module.kind hyperformer++");
  check_storage_refuses(dir, "--kind adapter --hyper-hidden 4 --backbone t5-base", 2,
                        "--hyper-hidden does not apply to kind adapter with mask none");
  check_storage_refuses(dir, "--kind hyperformer++ --hyper-hidden 65537 --backbone t5-base", 2,
                        "module.hyper_hidden is 65537, must be a whole number from 1 to 65536");
  check_storage_refuses(dir, "--kind hyperformer++ --backbone roberta-base", 2,
                        "hyperformer++ needs a backbone with an encoder and a decoder");
  check_storage_refuses(dir, "--kind adapter --mask learned --tasks 3 --backbone t5-base", 2,
                        "there is no storage formula for masked, unshared modules with 3 tasks: "
                        "share is false, must be true with a mask and several tasks");
  check_storage_refuses(dir, "--kind full_finetuning --d-model 8 --layers 2", 2,
                        "storage of full_finetuning requires --backbone or --parameters");
  check_storage_refuses(dir, "--kind adapter --d-model 8", 2,
                        "a backbone without a name needs --d-model and --layers");
  dir.write("bad.yaml", "module: {kind: adapter\n");
  const CommandResult bad = storage(dir, "bad.yaml");
  CHECK(bad.exit_code == 2);
  CHECK(bad.err.find("bad.yaml:") != std::string::npos);
  dir.write("list.json", "[1, 2]");
  check_storage_refuses(dir, "list.json", 2,
                        "list.json: found no mapping, expected a trial's configuration");
  dir.write("sweep.yaml", "sweep: a\nbase: {backbone: minilm}\n");
  check_storage_refuses(dir, "sweep.yaml", 2, "sweep.yaml: base is not a field of a trial");
  dir.write("small.yaml", "backbone: t5-base\nmodule: {kind: adapter, bottleneck: 0}\n");
  check_storage_refuses(dir, "small.yaml", 2,
                        "small.yaml: module.bottleneck is 0, must be a whole number from 1 to "
                        "1048576");
  dir.write("c.yaml", "backbone: t5-base\nmodule: {kind: adapter}\n");
  check_storage_refuses(
      dir, "c.yaml --kind lora", 2,
      "storage needs an artifact, a configuration file, or --kind with its options");
  check_storage_refuses(dir, "c.yaml --rank 4", 2,
                        "found both --rank and c.yaml, expected one of them");
}
