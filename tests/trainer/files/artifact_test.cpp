#include "trainer/artifact/artifact.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <bit>
#include <cstring>
#include <fstream>
#include <limits>
#include <new>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

#include "base/error.h"
#include "protocol/artifact_format.h"
#include "tests/support/catch.h"
#include "tests/support/storage_formula.h"
#include "tests/support/temp_dir.h"
#include "trainer/compute/random_stream.h"
#include "trainer/modules/mask_selection.h"

namespace petlab::trainer {
namespace {

using metrics::MaskKind;
using metrics::ModuleStorage;
using testing::formula_of;

std::vector<float> numbers(std::uint64_t parameter, std::int64_t n) {
  std::vector<float> values(static_cast<std::size_t>(n));
  fill_normal(7, parameter, 1.0, values);
  return values;
}

std::vector<std::uint8_t> mask(std::uint64_t parameter, std::int64_t n, double k) {
  std::vector<std::uint8_t> result(static_cast<std::size_t>(n));
  select_mask(numbers(parameter, n), k, result);
  return result;
}

/// An adapter as saved after training: d 6, bottleneck 3, two layers.
Artifact adapter(bool share, MaskKind kind, double k) {
  Artifact artifact;
  artifact.trial_id = "4f1c";
  artifact.config = R"({"backbone":"minilm","seed":42})";
  artifact.backbone_digest = "sha256:12";
  artifact.numerics = "1";
  artifact.step = 120;
  artifact.module = ModuleStorage{formula_of("adapter"), 6, 2, 3, share, kind, k, 1};
  artifact.labels = {{"cola", {"0", "1"}}, {"stsb", {}}};
  std::uint64_t number = 0;
  for (int copy = 0; copy < (share ? 1 : 2); ++copy) {
    const std::string at = std::to_string(copy) + ".";
    for (const auto& [name, shape] : {std::pair("down", std::vector<std::int64_t>{3, 6}),
                                      std::pair("up", std::vector<std::int64_t>{6, 3})}) {
      if (!share && kind != MaskKind::none) {
        ArtifactSparse sparse{at + name, shape, numbers(++number, 18), mask(++number, 18, k)};
        for (std::size_t i = 0; i < 18; ++i) sparse.values[i] *= sparse.kept[i];
        for (float& value : sparse.values) value += 0.0f;  // turns -0 of dropped weights into 0
        artifact.sparse.push_back(sparse);
      } else {
        artifact.values.push_back({at + name, shape, numbers(++number, 18)});
      }
    }
    artifact.values.push_back({at + "down_bias", {3}, numbers(++number, 3)});
    artifact.values.push_back({at + "up_bias", {6}, numbers(++number, 6)});
  }
  if (share && kind != MaskKind::none) {
    for (int layer = 0; layer < 2; ++layer) {
      artifact.masks.push_back(
          {"mask.down." + std::to_string(layer), {3, 6}, mask(++number, 18, k)});
      artifact.masks.push_back({"mask.up." + std::to_string(layer), {6, 3}, mask(++number, 18, k)});
    }
  }
  artifact.head.push_back({"head.dense.weight", {2, 2}, numbers(++number, 4)});
  return artifact;
}

bool same(const Artifact& a, const Artifact& b) {
  return a.trial_id == b.trial_id && a.config == b.config &&
         a.backbone_digest == b.backbone_digest && a.numerics == b.numerics && a.step == b.step &&
         a.module.has_value() == b.module.has_value() &&
         (!a.module || protocol::to_json(*a.module) == protocol::to_json(*b.module)) &&
         a.labels == b.labels && a.values == b.values && a.sparse == b.sparse &&
         a.masks == b.masks && a.head == b.head;
}

std::string refusal(const std::string& bytes) {
  try {
    parse_artifact(bytes, "a.petl");
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "no error";
}

TEST_CASE("an artifact reads back bit-identical and takes the formula's bits", "[trainer][files]") {
  const testing::TempDir dir;
  const auto file = dir.path() / "artifact.petl";
  for (const bool share : {false, true}) {
    for (const MaskKind kind : {MaskKind::none, MaskKind::learned, MaskKind::random}) {
      INFO("share " << share << " mask " << to_string(kind));
      Artifact artifact = adapter(share, kind, 0.3);
      artifact.values.back().values = {-0.0f, 1, 2, 3, 4, 5};
      write_artifact(file, artifact);
      const Artifact read = read_artifact(file);
      CHECK(same(read, artifact));
      CHECK(std::bit_cast<std::uint32_t>(read.values.back().values[0]) == 0x80000000u);
      const auto storage = protocol::read_artifact_storage(file);
      CHECK(storage.trial_id == "4f1c");
      CHECK(storage.config == artifact.config);
      REQUIRE(storage.module.has_value());
      CHECK(storage.bls_bits == metrics::bls_bits(*artifact.module));
      const auto wanted = static_cast<std::uint64_t>(metrics::stored_bits(*artifact.module));
      CHECK(storage.stored_bits() == wanted);
      CHECK(storage.masks_bits == (share && kind != MaskKind::none ? 72u : 0u));
      CHECK(storage.positions_bits == (!share && kind != MaskKind::none ? 72u : 0u));
      CHECK(storage.head_bits == 128);
      CHECK(storage.file_bytes == std::filesystem::file_size(file));
    }
  }
}

TEST_CASE("NaNs keep their bits", "[trainer][files]") {
  const testing::TempDir dir;
  Artifact artifact;
  const std::uint32_t bits = 0x7fc12345;
  artifact.values = {{"x", {1}, {std::bit_cast<float>(bits)}}, {"empty", {0, 3}, {}}};
  write_artifact(dir.path() / "a.petl", artifact);
  const Artifact read = read_artifact(dir.path() / "a.petl");
  CHECK(std::bit_cast<std::uint32_t>(read.values[0].values[0]) == bits);
  CHECK_FALSE(protocol::read_artifact_storage(dir.path() / "a.petl").bls_bits.has_value());
}

// AddressSanitizer's shadow memory would exceed the limit.
#if !defined(PETLAB_SANITIZED)
/// This process's private writable memory in bytes (VmData in /proc/self/status).
std::uint64_t data_memory() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    std::uint64_t kib = 0;
    if (word == "VmData:" && status >> kib) return kib << 10;
  }
  return 0;
}

TEST_CASE("a large artifact is written and read without memory for a copy", "[trainer][files]") {
  constexpr std::int64_t kNumbers = std::int64_t{32} << 20;  // 128 MiB
  const testing::TempDir dir;
  const auto file = dir.path() / "artifact.petl";
  Artifact artifact;
  artifact.values.push_back({"all", {kNumbers}, std::vector<float>(kNumbers, 0.5f)});
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    const rlimit limit = {data_memory() + (std::uint64_t{32} << 20), RLIM_INFINITY};
    if (::setrlimit(RLIMIT_DATA, &limit) != 0) ::_exit(2);
    try {
      write_artifact(file, artifact);
      const Artifact read = read_artifact(file);
      ::_exit(read.values.front().values[kNumbers - 1] == 0.5f ? 0 : 3);
    } catch (const std::bad_alloc&) {
      ::_exit(1);
    }
  }
  int status = -1;
  CHECK(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
}
#endif

TEST_CASE("an artifact with other sizes than the formula's is not written", "[trainer][files]") {
  const testing::TempDir dir;
  const auto file = dir.path() / "a.petl";
  Artifact artifact = adapter(true, MaskKind::learned, 0.5);
  artifact.masks.pop_back();
  CHECK_THROWS_WITH(write_artifact(file, artifact),
                    "values and masks are 1494 bits, the formula of the module gives 1512");
  artifact = adapter(true, MaskKind::none, 0.5);
  artifact.values[0].shape = {4, 6};
  CHECK_THROWS_WITH(write_artifact(file, artifact),
                    "tensor 0.down: 18 elements are given, [4, 6] has 24");
  artifact.values[0].shape = {3, 6};
  artifact.head[0].name = "0.down";
  CHECK_THROWS_WITH(write_artifact(file, artifact), "tensor 0.down occurs twice");
  CHECK_FALSE(std::filesystem::exists(file));
}

TEST_CASE("damaged artifacts are refused with what was found and expected", "[trainer][files]") {
  const testing::TempDir dir;
  const auto file = dir.path() / "a.petl";
  write_artifact(file, adapter(true, MaskKind::learned, 0.5));
  const std::string good = testing::read_file(file);
  REQUIRE(refusal(good) == "no error");
  const auto changed = [&](std::size_t at, const std::string& bytes) {
    std::string copy = good;
    copy.replace(at, bytes.size(), bytes);
    return refusal(copy);
  };
  const auto u32 = [](std::uint32_t value) {
    return std::string(reinterpret_cast<const char*>(&value), 4);
  };
  CHECK(refusal("") == "a.petl: is truncated: found 0 bytes, expected at least the first 32");
  CHECK(refusal("not an artifact") == "a.petl: is not a petlab artifact: its first bytes differ");
  CHECK(refusal(good.substr(0, 20)) ==
        "a.petl: is truncated: found 20 bytes, expected at least the first 32");
  CHECK(
      refusal(good.substr(0, 100)).starts_with("a.petl: is truncated or damaged: the header of "));
  CHECK(refusal(good.substr(0, good.size() - 1))
            .starts_with("a.petl: is truncated or damaged: section head of 128 bits ends beyond"));
  CHECK(refusal(good + "x") == "a.petl: is damaged: 1 bytes after the last section");
  CHECK(changed(8, u32(2)) ==
        "a.petl: has format version 2, newer than 1: read it with the petlab that wrote it, or a "
        "newer one");
  CHECK(changed(8, u32(0)) ==
        "a.petl: has format version 0, older than 1, the first published one");
  CHECK(changed(12, u32(0xffffffff)) ==
        "a.petl: has 4294967295 sections according to its header, must have at most 16");
  CHECK(changed(16, std::string(8, '\xff'))
            .starts_with("a.petl: is truncated or damaged: the header of 18446744073709551615"));
  // Any damaged byte is detected, by a checksum or by another check.
  for (std::size_t at = 0; at < good.size(); ++at) {
    std::string copy = good;
    copy[at] = static_cast<char>(copy[at] ^ 0x10);
    INFO("byte " << at);
    CHECK(refusal(copy) != "no error");
    // Any truncated file is refused.
    CHECK(refusal(good.substr(0, at)) != "no error");
  }
}

TEST_CASE("a header that does not match its tensors is refused", "[trainer][files]") {
  const auto with_tensors = [](const std::string& tensors, std::uint64_t mask_bits = 4) {
    const std::string values(8, '\x01');
    const std::string masks(1, '\x05');
    return refusal(protocol::make_artifact_container(
        R"({"trial":"t","config":{},"backbone_digest":"","numerics":"","step":1,"labels":{},"tensors":)" +
            tensors + "}",
        {{protocol::ArtifactSectionKind::values, 64, values},
         {protocol::ArtifactSectionKind::masks, mask_bits, masks}}));
  };
  const std::string good =
      R"([{"name":"v","section":"values","shape":[2]},{"name":"m","section":"masks","shape":[2,2]}])";
  CHECK(with_tensors(good) == "no error");
  CHECK(with_tensors(good, 2) == "a.petl: is damaged: section masks has bits after its end");
  try {
    protocol::artifact_storage(protocol::make_artifact_container("{\"\u00e9\"\u00e9", {}),
                               "a.petl");
    CHECK(false);
  } catch (const base::Error& error) {
    CHECK(std::string(error.what()) == "a.petl: its header is not JSON: error at byte 6");
  }
  CHECK(with_tensors("[]") == "a.petl: section values holds 64 bits, its tensors take 0");
  CHECK(with_tensors(R"([{"name":"v","section":"values","shape":[3]}])") ==
        "a.petl: section values of 64 bits ends inside its tensors");
  CHECK(with_tensors(R"([{"name":"v","section":"values","shape":[4294967296,4294967296]}])") ==
        "a.petl: shape [4294967296,4294967296] is impossible");
  CHECK(with_tensors(R"([{"name":"v","section":"values","shape":[999999999999999]}])") ==
        "a.petl: section values of 64 bits ends inside its tensors");
  CHECK(with_tensors(R"([{"name":"v","section":"values","shape":[-1]}])") ==
        "a.petl: shape [-1] is impossible");
  CHECK(with_tensors(R"([{"name":"v","section":"x","shape":[1]}])") ==
        "a.petl: tensor v: section 'x' is not known, expected values, masks or head");
  CHECK(with_tensors(R"([{"name":"v"}])")
            .starts_with("a.petl: its header does not follow docs/reference/artifact.md: "));
}

TEST_CASE("a module's shape in a header must have a formula", "[trainer][files]") {
  const ModuleStorage module{formula_of("lora"), 384, 6, 8, true, MaskKind::learned, 0.5, 1};
  const nlohmann::json json = nlohmann::json::parse(protocol::to_json(module).dump());
  const ModuleStorage read = protocol::module_storage_from_json(json);
  CHECK(metrics::stored_bits(read) == metrics::stored_bits(module));
  const auto refused = [&](const char* field, const nlohmann::json& value) -> std::string {
    nlohmann::json changed = json;
    changed[field] = value;
    try {
      protocol::module_storage_from_json(changed);
    } catch (const base::Error& error) {
      return error.what();
    }
    return "no error";
  };
  CHECK(refused("family", "x") ==
        "module.family is 'x', must be one of adapter, lora, prefix, hyperformer++");
  CHECK(refused("d_model", 0) == "module.d_model is 0, must be a whole number in 1..100000");
  CHECK(refused("layers", 1e9) ==
        "module.layers is 1000000000.0, must be a whole number in 1..100000");
  CHECK(refused("mask", "y") == "module.mask is 'y', must be none, learned or random");
  CHECK(refused("sparsity_ratio", 0) == "module.sparsity_ratio must be a number in (0, 1]");
  CHECK(refused("share", 3) == "module.share must be true or false");
}

TEST_CASE("a hypernetwork in a header has its sizes, and cannot have sharing or masks",
          "[trainer][files]") {
  ModuleStorage module{formula_of("hyperformer++"), 384, 6, 8};
  module.tasks = 3;
  module.other_sizes = {4, 5, 6};
  const nlohmann::json json = nlohmann::json::parse(protocol::to_json(module).dump());
  const ModuleStorage read = protocol::module_storage_from_json(json);
  CHECK(read.other_sizes == module.other_sizes);
  CHECK(metrics::stored_bits(read) == metrics::stored_bits(module));
  const auto refused = [&](const char* field, const nlohmann::json& value) -> std::string {
    nlohmann::json changed = json;
    changed[field] = value;
    try {
      protocol::module_storage_from_json(changed);
    } catch (const base::Error& error) {
      return error.what();
    }
    return "no error";
  };
  CHECK(refused("embedding", nullptr) ==
        "module.embedding is null, must be a whole number in 1..100000");
  CHECK(refused("projected", 0) == "module.projected is 0, must be a whole number in 1..100000");
  CHECK(refused("share", true) ==
        "module.share must be false and module.mask none in a hypernetwork");
  CHECK(refused("mask", "learned") ==
        "module.share must be false and module.mask none in a hypernetwork");
}

}  // namespace
}  // namespace petlab::trainer
