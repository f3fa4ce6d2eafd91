#include "sweeps/worker_catalog.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "metrics/metric_table.h"
#include "sweeps/identity.h"
#include "sweeps/schema.h"
#include "sweeps/sweep_reader.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

using namespace petlab;
using namespace petlab::sweeps;
using nlohmann::json;
using petlab::testing::has_text;
using petlab::testing::TempDir;

namespace {

json catalog_of_a_decoder() {
  return json::parse(R"({
    "backbones": [],
    "uses": ["training.learning_rate", "training.epochs", "training.steps"],
    "defaults": {"training.learning_rate": 0.01},
    "kinds": {"ia3": {"help": "rescaling"}, "soft-prompt": {"uses": ["module.rank"]}},
    "fields": {
      "module.targets": {"type": "text", "values": ["q", "qv"], "default": "qv"},
      "lm.block": {"type": "integer", "default": 64, "min": 8, "max": 512},
      "lm.heat": {"type": "number", "default": 1.0, "kinds": ["ia3"]},
      "lm.tied": {"type": "boolean", "kinds": ["soft-prompt"]}},
    "metrics": {"nats": {"better": "lower"}},
    "tasks": {"letters": {"metrics": ["nats", "accuracy"]}}})");
}

// Learns a catalog with these changes, by key path, and returns its id.
std::string learned(const std::string& name, const json& changes = json::object()) {
  json catalog = catalog_of_a_decoder();
  catalog["name"] = name;
  catalog.merge_patch(changes);
  const WorkerCatalog parsed = parse_worker_catalog(catalog, "worker");
  learn(parsed);
  return parsed.id;
}

Sweep sweep_of(const std::string& text, const std::string& catalog) {
  const TempDir folder;
  Locations locations;
  locations.home = folder.path();
  return read_sweep_text(text, folder.path() / "s.yaml", locations, kMaxTrials, {}, catalog);
}

// The problems of a sweep, without the file's folder.
std::string problems_of(const std::string& text, const std::string& catalog) {
  try {
    sweep_of(text, catalog);
  } catch (const base::FileProblemsError& error) {
    std::string all;
    for (const std::string& problem : error.problems()) {
      all += problem.substr(problem.find("s.yaml")) + "\n";
    }
    return all;
  }
  return {};
}

}  // namespace

TEST_CASE("A sweep uses the kinds, fields, defaults and tasks that a worker declares",
          "[sweeps][catalog]") {
  const std::string catalog = learned("decoder");
  CHECK(catalog == "decoder 1");
  const Sweep sweep = sweep_of(
      "sweep: s\nbase: {task: letters}\nvariants:\n  a: {module.kind: ia3, lm.heat: 2}\n"
      "  b: {module.kind: soft-prompt, lm.tied: true, module: {rank: 4, targets: q}}\n",
      catalog);
  REQUIRE(sweep.trials.size() == 2);
  CHECK(
      to_json(sweep.trials[0].config).dump() ==
      R"({"catalog":"decoder 1","task":"letters","seed":42,"module":{"kind":"ia3","targets":"qv"},)"
      R"("training":{"epochs":20,"learning_rate":0.01},"lm":{"block":64,"heat":2.0},"user":{}})");
  CHECK(to_json(sweep.trials[1].config).dump() ==
        R"({"catalog":"decoder 1","task":"letters","seed":42,"module":{"kind":"soft-prompt",)"
        R"("rank":4,"targets":"q"},"training":{"epochs":20,"learning_rate":0.01},"lm":{"block":64,)"
        R"("tied":true},"user":{}})");
  for (const SweepTrial& trial : sweep.trials) {
    CHECK(trial_config_from_json(json(to_json(trial.config))) == trial.config);
    CHECK_FALSE(trial.bls_bits);
  }
  CHECK(metrics::higher_is_better("nats") == false);
}

TEST_CASE("A mistake in a declared field or kind has its line and the nearest word",
          "[sweeps][catalog]") {
  const std::string catalog = learned("careful");
  CHECK(problems_of("sweep: s\nbase:\n  task: letters\n  module.kind: ia4\n  lm.blok: 8\n"
                    "  module.targets: qq\n  training.weight_decay: 0\n  backbone: x\n",
                    catalog) ==
        "s.yaml:4: module.kind: found 'ia4', expected ia3 or soft-prompt (nearest: ia3)\n"
        "s.yaml:5: base: found 'lm.blok', expected a field of worker careful 1 (nearest: "
        "lm.block)\n"
        "s.yaml:6: module.targets: found 'qq', expected one of q, qv\n"
        "s.yaml:7: base: found 'training.weight_decay', expected a field of worker careful 1 "
        "(nearest: training.epochs)\n"
        "s.yaml:8: base: found 'backbone', expected a field of worker careful 1\n");
  CHECK(problems_of("sweep: s\nbase: {task: letters, module.kind: soft-prompt, lm.block: 7}\n",
                    catalog) ==
        "s.yaml:2: lm.block: found 7, expected a whole number from 8 to 512\n"
        "s.yaml:2: lm.tied: found nothing, expected true or false\n");
  CHECK(problems_of("sweep: s\nbase: {task: letters}\n", catalog) ==
        "s.yaml:2: module.kind: found nothing, expected ia3 or soft-prompt\n");
}

TEST_CASE("A declared storage formula reads fields and the backbone's config.json",
          "[sweeps][catalog]") {
  const std::string catalog = learned("sized", json::parse(R"({
    "backbones": ["llama"],
    "kinds": {
      "ia3": {"storage": {"biases": "2*kv_size + wide", "layers": "depth"}},
      "soft-prompt": {"size": "n", "sizes": {"n": "module.vectors"},
                      "storage": {"weights": ["n*hidden"], "per_model": true}},
      "low-rank": {"uses": ["module.rank", "module.share", "module.mask", "module.sparsity_ratio"],
                   "size": "r", "sizes": {"r": "module.rank"},
                   "storage": {"weights": ["r*hidden", "hidden*r"], "layers": "depth"}}},
    "fields": {"module.vectors": {"type": "integer", "min": 2, "kinds": ["soft-prompt"]}}})"));
  const TempDir folder;
  const std::filesystem::path backbone = folder.path() / "small";
  std::filesystem::create_directory(backbone);
  std::ofstream(backbone / "model.safetensors") << "weights";
  const auto plan = [&](const std::string& variants, const char* depth) {
    std::ofstream(backbone / "config.json")
        << R"({"model_type": "llama", "hidden": 10, "kv_size": 4, "wide": 22, "scale": 1.5)"
        << depth << "}";
    Locations locations;
    locations.home = folder.path();
    const std::string text =
        "sweep: s\nbase: {task: letters, lm.tied: true, lm.heat: 1, backbone: " +
        backbone.string() + "}\nvariants:\n" + variants;
    return read_sweep_text(text, folder.path() / "s.yaml", locations, kMaxTrials, {}, catalog);
  };
  const std::string variants =
      "  a: {module.kind: ia3}\n  b: {module: {kind: soft-prompt, vectors: {match_storage_of: "
      "a}}}\n"
      "  c: {module: {kind: low-rank, rank: 2, share: true, mask: learned}}\n";
  const Sweep sweep = plan(variants, ", \"depth\": 2");
  REQUIRE(sweep.trials.size() == 3);
  CHECK(sweep.trials[0].bls_bits == 32 * 2 * (2 * 4 + 22));
  CHECK(find_field("module.vectors")->get(sweep.trials[1].config) == 6);
  CHECK(sweep.trials[1].storage_note == "vectors 6 for the storage of a: equal");
  CHECK(sweep.trials[2].bls_bits == 32 * 2 * 20 + 2 * 20 * 2);
  try {
    plan("  a: {module.kind: ia3}\n", "");
    FAIL("accepted");
  } catch (const base::FileProblemsError& error) {
    REQUIRE(error.problems().size() == 1);
    CHECK_THAT(
        error.problems().front(),
        has_text("s.yaml:4: module.kind: found ia3, expected a storage formula that fields and "
                 "config.json can answer (depth: there is no value of depth)"));
  }
}

TEST_CASE("A worker names the backbone's files that determine a trial's id", "[sweeps][catalog]") {
  const std::string catalog = learned(
      "named", json::parse(R"({"backbones": ["llama"], "backbone_files": ["*.json", "w.bin"]})"));
  const TempDir folder;
  const std::filesystem::path backbone = folder.path() / "small";
  std::filesystem::create_directory(backbone);
  const auto write = [&](const char* name, const char* text) {
    std::ofstream(backbone / name) << text;
  };
  const auto id = [&] {
    Locations locations;
    locations.home = folder.path();
    const std::string text =
        "sweep: s\nbase: {task: letters, module.kind: ia3, backbone: " + backbone.string() + "}\n";
    return read_sweep_text(text, folder.path() / "s.yaml", locations, kMaxTrials, {}, catalog)
        .trials.front()
        .id.value;
  };
  write("config.json", R"({"model_type": "llama"})");
  write("w.bin", "1");
  const std::string first = id();
  write("notes.txt", "not named");
  CHECK(id() == first);
  write("more.json", "{}");
  const std::string second = id();
  CHECK(second != first);
  write("w.bin", "22");
  CHECK(id() != second);
  std::filesystem::remove(backbone / "w.bin");
  CHECK_THROWS_WITH(id(),
                    has_text("small: found no file 'w.bin', expected what the worker's catalog "
                             "names"));
}

TEST_CASE("A mistake in a storage formula names its key", "[sweeps][catalog]") {
  const auto refused = [](const char* kind) {
    json catalog = catalog_of_a_decoder();
    catalog["kinds"] = {{"k", json::parse(kind)}};
    catalog["fields"] = json::object();
    try {
      parse_worker_catalog(catalog, "w");
    } catch (const std::invalid_argument& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  CHECK(refused(R"({"storage": 5})") ==
        "catalog.kinds.k.storage: found 5, expected reported, backbone, none or an object of "
        "formulas");
  CHECK(
      refused(R"({"storage": {"weights": ["a-b"], "layers": "n"}})") ==
      "catalog.kinds.k.storage.weights: found 'a-b', expected a whole number from 1 to 1000000000 "
      "or a name");
  CHECK(refused(R"({"storage": {"weights": ["a"]}})") ==
        "catalog.kinds.k.storage: found a group of keys, expected layers, or per_model: true");
  CHECK(refused(R"({"storage": {"weight": ["a"], "layers": "n"}})") ==
        "catalog.kinds.k.storage.weight: unknown key; expected a key of this object (nearest: "
        "weights)");
  CHECK(refused(R"({"sizes": {"r": "module.rnk"}, "size": "r", "uses": ["module.rank"]})") ==
        "catalog.kinds.k.sizes.r: found 'module.rnk', expected a field of this kind whose values "
        "are whole numbers or switches");
  CHECK(refused(R"({"sizes": {"r": "module.rank"}, "size": "q", "uses": ["module.rank"]})") ==
        "catalog.kinds.k.size: found 'q', expected one of the names in sizes");
  CHECK(refused(R"({"sizes": {"a": "module.alpha"}, "size": "a", "uses": ["module.alpha"]})") ==
        "catalog.kinds.k.sizes.a: found 'module.alpha', expected a field of this kind whose values "
        "are whole numbers or switches");
  CHECK(refused(R"({"memory": {"keeps": "d"}})") ==
        "catalog.kinds.k.memory: unknown key; expected a key of this object");
  CHECK(refused(R"({"storage": "none"})") == "accepted");
}

TEST_CASE("The built-in catalog has nothing of a worker's", "[sweeps][catalog]") {
  learned("other");
  const std::string problems =
      problems_of("sweep: s\nbase: {task: letters, module.kind: ia3, lm.block: 8}\n", "");
  CHECK_THAT(problems, has_text("base: found 'lm.block', expected a field of a trial"));
  CHECK_THAT(problems, has_text("a worker may declare more: --worker"));
  CHECK_THAT(problems, has_text("task: found 'letters'"));
  const std::string schema = sweep_schema().dump();
  CHECK(schema.find("lm.block") == std::string::npos);
  CHECK(schema.find("ia3") == std::string::npos);
}

TEST_CASE("An id covers catalog, version and values, and a default is hashed as if left out",
          "[sweeps][catalog]") {
  const auto id_of = [](const std::string& settings, const std::string& catalog) {
    return sweep_of("sweep: s\nbase: {task: letters, module.kind: ia3" + settings + "}\n", catalog)
        .trials.at(0)
        .id.value;
  };
  const std::string first = learned("same");
  const std::string id = id_of("", first);
  CHECK(id_of(", lm.block: 64, lm.heat: 1", first) == id);
  // A field added with a default keeps the ids.
  CHECK(learned("same", {{"fields", {{"lm.new", {{"type", "integer"}, {"default", 3}}}}}}) ==
        first);
  CHECK(id_of("", first) == id);
  CHECK(id_of(", lm.new: 3", first) == id);
  std::set<std::string> ids = {id};
  for (const char* setting : {", lm.block: 65", ", lm.heat: 1.5", ", module.targets: q",
                              ", lm.new: 4", ", training.learning_rate: 1e-3"}) {
    CHECK(ids.insert(id_of(setting, first)).second);
  }
  CHECK(ids.insert(id_of("", learned("same", {{"version", 2}}))).second);
  CHECK(ids.insert(id_of("", learned("another"))).second);
}

TEST_CASE("A catalog that contradicts a known one is refused", "[sweeps][catalog]") {
  learned("steady");
  CHECK_THROWS_WITH(learned("steady", {{"fields", {{"lm.block", {{"default", 32}}}}}}),
                    "catalog 'steady 1': the default of lm.block is 32, but trials of this version "
                    "were planned with 64; raise the catalog's version");
  CHECK_NOTHROW(learned("steady", {{"version", 2}, {"fields", {{"lm.block", {{"default", 32}}}}}}));
  CHECK_THROWS_WITH(
      learned("foreign", {{"fields", {{"lm.heat", {{"type", "text"}, {"default", "hot"}}}}}}),
      has_text("declare lm.heat with different types"));
  CHECK_THROWS_WITH(learned("upside", {{"metrics", {{"nats", {{"better", "higher"}}}}}}),
                    has_text("metric 'nats'"));
}

TEST_CASE("Each fault of a catalog is named", "[sweeps][catalog]") {
  const std::map<std::string, json> faults = {
      {"catalog.colour: unknown key", {{"colour", 1}}},
      {"catalog.version: found 0", {{"version", 0}}},
      {"catalog.name: found 'a b'", {{"name", "a b"}}},
      {"catalog.backbones: found 'llama', expected a list of texts", {{"backbones", "llama"}}},
      {"catalog.uses: found 'training.epoch'", {{"uses", {"training.epoch"}}}},
      {"catalog.defaults.training.epochs: found 0", {{"defaults", {{"training.epochs", 0}}}}},
      {"catalog.kinds.ia3.uses: found 'module.rang'",
       {{"kinds", {{"ia3", {{"uses", {"module.rang"}}}}}}}},
      {"catalog.fields.block: found 'block'", {{"fields", {{"block", json::object()}}}}},
      {"catalog.fields.user.a: found 'user.a'", {{"fields", {{"user.a", json::object()}}}}},
      {"catalog.fields.module.rank: found", {{"fields", {{"module.rank", json::object()}}}}},
      {"catalog.fields.lm.x.type: found 'int'", {{"fields", {{"lm.x", {{"type", "int"}}}}}}},
      {"catalog.fields.lm.x.default: found 1",
       {{"fields", {{"lm.x", {{"type", "integer"}, {"min", 2}, {"default", 1}}}}}}},
      {"catalog.fields.lm.x.kinds: found 'ia4'", {{"fields", {{"lm.x", {{"kinds", {"ia4"}}}}}}}},
      {"catalog.metrics.a.better: found 'more'", {{"metrics", {{"a", {{"better", "more"}}}}}}},
      {"catalog.tasks.cola: found 'cola'", {{"tasks", {{"cola", {{"metrics", {"accuracy"}}}}}}}},
      {"catalog.tasks.t.metrics: found 'acuracy'",
       {{"tasks", {{"t", {{"metrics", {"acuracy"}}}}}}}}};
  for (const auto& [message, change] : faults) {
    INFO(message);
    CHECK_THROWS_WITH(learned("faulty", change), has_text(message));
  }
}

TEST_CASE("A catalog's text is read to the same catalog", "[sweeps][catalog]") {
  const WorkerCatalog catalog = parse_worker_catalog(catalog_of_a_decoder(), "text");
  CHECK(std::string_view(catalog.text).starts_with(kCatalogStart));
  const WorkerCatalog again = parse_worker_catalog(catalog.text);
  CHECK(again.text == catalog.text);
  CHECK(again.id == "text 1");
  CHECK(again.fields.size() == catalog.fields.size());
  CHECK_THROWS(parse_worker_catalog("sweep: s\n"));
}

TEST_CASE("The schema of a catalog has its kinds and fields alone", "[sweeps][catalog]") {
  const json schema = json::parse(sweep_schema(learned("schema")).dump());
  CHECK(schema.at("$defs").at("module.kind").at("enum") == json({"ia3", "soft-prompt"}));
  CHECK(schema.at("$defs").at("lm.block").at("minimum") == 8);
  CHECK(schema.at("$defs").at("module.targets").at("enum") == json({"q", "qv"}));
  CHECK_FALSE(schema.at("$defs").contains("training.weight_decay"));
  CHECK_FALSE(schema.at("$defs").contains("backbone"));
}
