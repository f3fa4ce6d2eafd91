#include "sweeps/identity.h"

#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/sha256.h"
#include "sweeps/catalog.h"
#include "sweeps/error.h"
#include "sweeps/fields.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"
#include "tests/sweeps/fixture.h"

using namespace petlab;
using namespace petlab::sweeps;
using petlab::sweeps::testing::Home;
using petlab::testing::TempDir;

namespace {

const std::string kBackbone = "sha256:" + std::string(64, '0');

TrialConfig config_of(const std::string& kind, const std::string& task) {
  TrialConfig config = default_config(kind);
  config.backbone = "anything";
  config.tasks = {task};
  return config;
}

std::string id_of(const TrialConfig& config) {
  std::vector<std::string> tasks;
  for (const std::string& task : config.tasks) tasks.push_back(task_digest(*find_task(task)));
  return trial_id(config, kBackbone, tasks).value;
}

}  // namespace

TEST_CASE("A trial's compute type is part of its id, but float32 is not written", "[sweeps]") {
  TrialConfig config = config_of("adapter", "cola");
  const std::string exact = id_of(config);
  CHECK(to_json(config).dump().find("compute") == std::string::npos);
  config.training.compute = ComputeType::bf16;
  CHECK(id_of(config) != exact);
  CHECK((trial_config_from_json(to_json(config)) == config));
  nlohmann::json json = to_json(config);
  json["training"]["compute"] = "fp16";
  CHECK_THROWS_WITH(trial_config_from_json(json),
                    Catch::Contains("training.compute is 'fp16', must be float32 or bf16"));
}

TEST_CASE("Ten ids are frozen", "[sweeps]") {
  // A change of these ids makes recorded results unreachable. It needs a new identity version.
  std::vector<std::pair<std::string, TrialConfig>> frozen;
  TrialConfig config = config_of("adapter", "cola");
  frozen.emplace_back("a0f9717543fa00b6", config);
  config.seed.value = 43;
  frozen.emplace_back("e629ba424339dad9", config);
  config.module.share = true;
  config.module.mask = metrics::MaskKind::learned;
  frozen.emplace_back("571d7f75600260d1", config);
  config.module.mask = metrics::MaskKind::random;
  config.module.sparsity_ratio = 0.1708;
  frozen.emplace_back("642effbdcbd8a47a", config);
  config = config_of("lora", "stsb");
  config.module.alpha = 48;
  frozen.emplace_back("c27d2ae4fc51ae04", config);
  config = config_of("prefix", "movie-polarity");
  config.module.mask = metrics::MaskKind::learned;
  config.training.mask_learning_rate = 3e-3;
  frozen.emplace_back("d7726a4395733cef", config);
  config = config_of("full_finetuning", "mnli");
  config.training.learning_rate = 2e-5;
  config.training.epochs = 10;
  frozen.emplace_back("6eefbbc3b67f76e4", config);
  config = config_of("head_only", "tweets-valence");
  config.data.max_train_examples = 1000;
  frozen.emplace_back("bde029a1632ee152", config);
  config = config_of("adapter", "rte");
  config.tasks = {"rte", "qqp"};
  config.module.bottleneck = 6;
  frozen.emplace_back("91c0715332b876db", config);
  config.user = R"({"note":"ü","k":1,"flag":true,"none":null})";
  frozen.emplace_back("eceffd12831e9050", config);
  for (const auto& [id, frozen_config] : frozen) CHECK(id_of(frozen_config) == id);
}

TEST_CASE("The ids of generated adapters are frozen", "[sweeps]") {
  TrialConfig config = config_of("hyperformer++", "cola");
  config.tasks = {"cola", "rte"};
  CHECK(id_of(config) == "d761f6b0a478c577");
  config.module.bottleneck = 64;  // not this kind's default
  CHECK(id_of(config) == "fdfe73fea178aef8");
  config.module.bottleneck = 24;
  config.module.hyper_hidden = 32;
  CHECK(id_of(config) == "27969f9608467579");
}

TEST_CASE("Fields that affect results change the id, the others do not", "[sweeps]") {
  for (const ModuleRow& row : modules()) {
    const std::string kind(row.kind);
    TrialConfig config = config_of(kind, "cola");
    const bool maskable = row.has_field("module.mask");
    if (maskable) config.module.mask = metrics::MaskKind::learned;
    const std::string before = id_of(config);
    for (const Field& field : fields()) {
      if (field.name == "module.kind" || field.name == "backbone") continue;
      TrialConfig changed = config;
      nlohmann::json value = field.get(config);
      if (value.is_boolean()) {
        value = !value.get<bool>();
      } else if (value.is_string()) {
        value = value == "or" ? "and" : value == "float32" ? "bf16" : "random";
      } else if (value.is_number_integer()) {
        value = value.get<std::int64_t>() + 1;
      } else {
        value = value.get<double>() + 0.125;
      }
      REQUIRE(field.set(changed, value));
      INFO(kind << " " << field.name);
      CHECK((id_of(changed) != before) == (field.hashed && is_active(field, changed)));
    }
  }
}

TEST_CASE("The order of user keys does not change the id", "[sweeps]") {
  TrialConfig config = config_of("adapter", "cola");
  config.user = R"({"a":1,"b":2})";
  const std::string before = id_of(config);
  config.user = R"({"b":2,"a":1})";
  CHECK(id_of(config) == before);
  config.user = R"({"b":2,"a":"1"})";
  CHECK(id_of(config) != before);
}

TEST_CASE("A backbone is identified by its content, not by its path", "[sweeps]") {
  const Home home;
  home.backbone("copy", 384, 6, 30522, "weights of minilm");
  home.backbone("other", 384, 6, 30522, "weights of others");
  home.folder().write("models/copy/README.md", "not part of it");
  FileDigests digests({});
  const std::filesystem::path models = home.locations().models();
  const std::string digest = backbone_digest(models / "minilm", digests);
  CHECK(digest.size() == 71);
  CHECK(backbone_digest(models / "copy", digests) == digest);
  CHECK(backbone_digest(models / "other", digests) != digest);
  home.folder().write("models/copy/vocab.txt", "[PAD]\n");
  CHECK(backbone_digest(models / "copy", digests) != digest);

  const Sweep by_name = home.load("sweep: t\nbase: {backbone: minilm, task: cola}\n");
  home.backbone("elsewhere/minilm", 384, 6, 30522, "weights of minilm");
  const Sweep by_path =
      home.load("sweep: t\nbase: {backbone: models/elsewhere/minilm, task: cola}\n");
  CHECK(by_name.trials[0].id == by_path.trials[0].id);
  CHECK(by_path.trials[0].config.backbone == (models / "elsewhere/minilm").string());
}

TEST_CASE("A sharded backbone is identified by its shards", "[sweeps]") {
  const TempDir folder;
  folder.write("config.json", "{}");
  FileDigests digests({});
  const auto check = [&](const std::string& message) {
    CHECK_THROWS_WITH(backbone_digest(folder.path(), digests), folder.path().string() + message);
  };
  check(
      ": found no weights, expected model.safetensors, pytorch_model.bin or the index of one in "
      "shards");
  folder.write("model.safetensors.index.json", "[]");
  check(
      "/model.safetensors.index.json: found no weight_map, expected the index of a sharded "
      "checkpoint");
  folder.write("model.safetensors.index.json", R"({"weight_map":{"w":"../x"}})");
  check(
      "/model.safetensors.index.json: tensor w: found '../x', expected the name of a file next to "
      "it");
  folder.write("model.safetensors.index.json", R"({"weight_map":{"w":"a","v":"b","u":"a"}})");
  folder.write("a", "1");
  check("/b: cannot be read: No such file or directory");
  folder.write("b", "2");
  const std::string digest = backbone_digest(folder.path(), digests);
  folder.write("b", "3 and more");
  CHECK(backbone_digest(folder.path(), digests) != digest);
}

TEST_CASE("Digests are cached until the file changes, and a broken cache is ignored", "[sweeps]") {
  const TempDir folder;
  const auto file = folder.write("data.bin", "abc");
  const auto cache = folder.path() / "cache";
  const std::string abc = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
  CHECK(FileDigests(cache).of(file) == abc);
  // The cached digest is used …
  std::string text = petlab::testing::read_file(cache / "digests.json");
  const std::string cached = "sha256:" + std::string(64, 'f');
  text.replace(text.find(abc), abc.size(), cached);
  folder.write("cache/digests.json", text);
  CHECK(FileDigests(cache).of(file) == cached);
  // … until the file changes or the cache is invalid.
  folder.write("data.bin", "abcd");
  CHECK(FileDigests(cache).of(file) != cached);
  folder.write("data.bin", "abc");
  for (const std::string broken : {"", "{", "[]", R"({"v":1})", R"({"v":2,"digests":{}})",
                                   R"({"v":1,"digests":{"x":7}})", "\xff"}) {
    folder.write("cache/digests.json", broken);
    CHECK(FileDigests(cache).of(file) == abc);
  }
  // A cache that cannot be written only costs time. Here its folder is a file.
  CHECK(FileDigests(file).of(file) == abc);
  CHECK_THROWS_AS(FileDigests(cache).of(folder.path() / "none"), Error);
  CHECK_THROWS_AS(FileDigests(cache).of(folder.path()), Error);
}

TEST_CASE("Data are identified by content and layout", "[sweeps]") {
  const TempDir folder;
  folder.write("glue/RTE/train.tsv", "a");
  folder.write("glue/RTE/dev.tsv", "b");
  folder.write("other/glue/RTE/train.tsv", "a");
  folder.write("other/glue/RTE/dev.tsv", "b");
  FileDigests digests({});
  const std::vector<std::filesystem::path> here{folder.path()};
  const std::vector<std::filesystem::path> there{folder.path() / "none", folder.path() / "other"};
  const std::string digest = data_digest(*find_task("rte"), here, digests);
  CHECK(data_digest(*find_task("rte"), there, digests) == digest);
  folder.write("other/glue/RTE/dev.tsv", "bc");
  CHECK(data_digest(*find_task("rte"), there, digests) != digest);
}

TEST_CASE("Digests of backbones, data and tasks are frozen because ids contain them", "[sweeps]") {
  const TempDir folder;
  FileDigests digests({});
  folder.write("whole/model.safetensors", "weights");
  folder.write("whole/tokenizer.json", "{}");
  folder.write("whole/vocab.txt", "[PAD]\n");
  folder.write("whole/config.json", "{}");
  CHECK(backbone_digest(folder.path() / "whole", digests) ==
        "sha256:5110352829393f7d9567c457db94add6bd4193919fd905bb691a15d9083bae94");
  // Each shard counts once, in the order of shard names and not of tensors.
  folder.write("shards/config.json", "{}");
  folder.write("shards/model.safetensors.index.json",
               R"({"weight_map":{"w":"b","v":"a","u":"b"}})");
  folder.write("shards/b", "2");
  folder.write("shards/a", "1");
  CHECK(backbone_digest(folder.path() / "shards", digests) ==
        "sha256:926354fc6ce207754709820156337c3f12c85f744afc49829f91376f19c858c8");
  folder.write("glue/RTE/train.tsv", "a");
  folder.write("glue/RTE/dev.tsv", "b");
  CHECK(
      data_digest(*find_task("rte"), std::vector<std::filesystem::path>{folder.path()}, digests) ==
      "sha256:6bf0e9447c5e7d289ed8abce34e628b855b2447c6119f1aa1b359ce7d0f9db4c");
  std::string all;
  for (const TaskDeclaration& task : tasks().first(16)) {
    all += task.name + " " + task_digest(task) + "\n";
  }
  CHECK(base::sha256(all) ==
        "sha256:0d5513f8ae7df58075d1d790d8ce699bcf7f182c11b9a70ced944cd88588a9ba");
  CHECK(task_digest(*find_task("wmt16-ro-en")) ==
        "sha256:3d9cbe84727b6f431f3e798da00bf6da97ea64af9b3980dc47086540558c8e77");
  CHECK(task_digest(*find_task("xsum")) ==
        "sha256:3e8be37c4dc55f60c1fa2c7549f3697a9ccc2a51ea9fba632513cae0e63d433d");
}

TEST_CASE("A digest is computed again if only the file's time changed", "[sweeps]") {
  const TempDir folder;
  const auto file = folder.write("data.bin", "abc");
  const auto cache = folder.path() / "cache";
  const std::string before = FileDigests(cache).of(file);
  const auto time = std::filesystem::last_write_time(file);
  // Keeps the file's inode and size.
  std::fstream(file, std::ios::in | std::ios::out) << "xyz";
  std::filesystem::last_write_time(file, time + std::chrono::seconds(1));
  CHECK(FileDigests(cache).of(file) != before);
}
