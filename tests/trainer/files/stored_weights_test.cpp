#include "trainer/backbones/stored_weights.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "tests/support/catch.h"
#include "tests/support/golden.h"
#include "tests/support/temp_dir.h"
#include "trainer/backbones/encoder_config.h"
#include "trainer/files/error.h"
#include "trainer/files/safetensors.h"

namespace petlab::trainer {
namespace {

bool same(const TensorView& a, const TensorView& b) {
  return a.dtype == b.dtype && a.shape == b.shape &&
         std::equal(a.bytes.begin(), a.bytes.end(), b.bytes.begin(), b.bytes.end());
}

void write_tensors(const std::filesystem::path& file, const std::vector<std::string>& names) {
  static const std::array<float, 2> values{1, 2};
  std::vector<std::pair<std::string, TensorView>> tensors;
  for (const std::string& name : names) {
    tensors.emplace_back(name,
                         TensorView{DType::f32, {2}, std::as_bytes(std::span(values)), nullptr});
  }
  write_safetensors(file, tensors);
}

BackboneWeights pick(const std::filesystem::path& folder, const std::vector<WantedTensor>& wanted) {
  static constexpr std::array<std::string_view, 1> kPrefixes{"bert."};
  static constexpr std::array<std::string_view, 1> kIgnored{"cls."};
  return pick_weights(open_weights(folder), wanted, kPrefixes, kIgnored);
}

TEST_CASE("prefixes are stripped, heads ignored and other unused weights named",
          "[trainer][files]") {
  const testing::TempDir dir;
  write_tensors(dir.path() / "model.safetensors",
                {"bert.a", "bert.x.LayerNorm.gamma", "cls.w", "b", "c"});
  const auto weights = pick(dir.path(), {{"a", {2}}, {"x.LayerNorm.weight", {2}}, {"b", {2}}});
  CHECK(weights.tensors.size() == 3);
  CHECK(weights.unused == std::vector<std::string>{"c"});
  const std::string file = (dir.path() / "model.safetensors").string();
  CHECK_THROWS_WITH(pick(dir.path(), {{"a", {2}}, {"y", {2}}, {"z", {1}}}),
                    file + ": missing: y, z");
  CHECK_THROWS_WITH(pick(dir.path(), {{"a", {1, 2}}}),
                    file + ": tensor a: found [2], expected [1, 2]");
}

TEST_CASE("a name with the prefix takes precedence over one without, in any order",
          "[trainer][files]") {
  const testing::TempDir dir;
  const std::array<float, 2> prefixed{1, 2}, other{3, 4};
  const auto view = [](const std::array<float, 2>& values) {
    return TensorView{DType::f32, {2}, std::as_bytes(std::span(values)), nullptr};
  };
  for (const bool prefixed_first : {true, false}) {
    std::vector<std::pair<std::string, TensorView>> tensors{{"bert.a", view(prefixed)},
                                                            {"a", view(other)}};
    if (!prefixed_first) std::swap(tensors[0], tensors[1]);
    write_safetensors(dir.path() / "model.safetensors", tensors);
    const BackboneWeights weights = pick(dir.path(), {{"a", {2}}});
    CHECK(to_floats(weights.tensors.at("a")) == std::vector<float>{1, 2});
    CHECK(weights.unused == std::vector<std::string>{"a"});
  }
}

TEST_CASE("the error about a folder without weights lists the expected files", "[trainer][files]") {
  const testing::TempDir dir;
  CHECK_THROWS_WITH(
      open_weights(dir.path()),
      dir.path().string() +
          ": found no weights, expected model.safetensors, model.safetensors.index.json, "
          "pytorch_model.bin or pytorch_model.bin.index.json");
}

TEST_CASE("an index must be an object of tensors and plain file names", "[trainer][files]") {
  const testing::TempDir dir;
  const auto index = dir.path() / "model.safetensors.index.json";
  dir.write("model.safetensors.index.json", "[]");
  CHECK_THROWS_WITH(open_weights(dir.path()),
                    index.string() + ": has no weight_map, expected an object of tensor: file");
  dir.write("model.safetensors.index.json", R"({"weight_map": {"a": 3}})");
  CHECK_THROWS_AS(open_weights(dir.path()), Error);
  for (const char* name : {"../x.safetensors", "/etc/passwd", "..", "", "x\\\\y", "a\\u0000b"}) {
    dir.write("model.safetensors.index.json",
              std::string(R"({"weight_map": {"a": ")") + name + "\"}}");
    CHECK_THROWS_AS(open_weights(dir.path()), Error);
  }
  write_tensors(dir.path() / "one.safetensors", {"a", "b"});
  dir.write("model.safetensors.index.json", R"({"weight_map": {"a": "one.safetensors"}})");
  CHECK(open_weights(dir.path()).tensors.size() == 2);
}

TEST_CASE("golden checkpoints hold the same weights in every format", "[trainer][files][golden]") {
  const auto models = testing::golden("models");
  if (!models) return;
  const auto folder = *models / "roberta-tiny";
  const EncoderConfig config = read_encoder_config(folder);
  const BackboneWeights whole = load_encoder_weights(folder, config);
  CHECK(whole.unused.empty());
  CHECK(whole.tensors.size() == encoder_tensors(config).size());
  const BackboneWeights sharded = load_encoder_weights(
      *models / "roberta-tiny-sharded", read_encoder_config(*models / "roberta-tiny-sharded"));
  REQUIRE(sharded.tensors.size() == whole.tensors.size());
  for (const auto& [name, tensor] : whole.tensors) {
    INFO(name);
    CHECK(same(tensor, sharded.tensors.at(name)));
  }
  const StoredWeights pickled = open_weights_file(folder / "pytorch_model.bin");
  const StoredWeights mapped = open_weights(folder);
  CHECK(pickled.tensors.count("roberta.embeddings.position_ids") == 1);
  for (const auto& [name, entry] : mapped.tensors) {
    INFO(name);
    REQUIRE(pickled.tensors.count(name) == 1);
    CHECK(same(entry.tensor, pickled.tensors.at(name).tensor));
  }
  testing::golden_ran("models/formats", std::ssize(mapped.tensors));
}

}  // namespace
}  // namespace petlab::trainer
