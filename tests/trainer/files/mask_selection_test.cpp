#include "trainer/modules/mask_selection.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>

#include "metrics/storage.h"
#include "tests/support/catch.h"
#include "tests/support/golden.h"
#include "tests/support/temp_dir.h"
#include "trainer/compute/random_stream.h"
#include "trainer/files/safetensors.h"

namespace petlab::trainer {
namespace {

using Json = nlohmann::json;
using Mask = std::vector<std::uint8_t>;

Mask mask_of(const std::vector<float>& scores, double k) {
  Mask mask(scores.size());
  select_mask(scores, k, mask);
  return mask;
}

/// The rule, implemented by a stable sort of |s|.
Mask sorted_mask(const std::vector<float>& scores, double k) {
  std::vector<std::size_t> order(scores.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::abs(scores[a]) < std::abs(scores[b]);
  });
  Mask mask(scores.size(), 1);
  const auto zeros = metrics::zeros_in_mask(k, static_cast<std::int64_t>(scores.size()));
  for (std::int64_t i = 0; i < zeros; ++i) mask[order[static_cast<std::size_t>(i)]] = 0;
  return mask;
}

/// The scores of large sizes, generated as golden/petl/mask_operator/case.json describes.
std::vector<float> generated(std::int64_t n, bool ties) {
  std::vector<float> scores;
  for (std::int64_t i = 0; i < n; ++i) {
    const double x = static_cast<double>((i * 40503 + 12345) % 65521);
    const double distinct = (x + 1) / 65522;
    const double score = ties ? (2 * x - 65521) / 65521 : (i % 2 != 0 ? -distinct : distinct);
    scores.push_back(static_cast<float>(score));
  }
  return scores;
}

TEST_CASE("the smallest magnitudes become 0, earlier ones first among equals", "[trainer][files]") {
  CHECK(mask_of({0.5f, -0.1f, 0.3f, -0.9f}, 0.5) == Mask{1, 0, 0, 1});
  CHECK(mask_of({1, -1, 1, -1}, 0.5) == Mask{0, 0, 1, 1});
  CHECK(mask_of({-0.0f, 0.0f, 0.0f, 1}, 0.5) == Mask{0, 0, 1, 1});
  CHECK(mask_of({1, 2}, 1.0) == Mask{1, 1});
  CHECK(mask_of({1, 2}, 0.0) == Mask{0, 0});
  CHECK(mask_of({}, 0.5).empty());
  const float nan = std::numeric_limits<float>::quiet_NaN();
  CHECK(mask_of({nan, std::numeric_limits<float>::infinity(), 1, 2}, 0.25) == Mask{1, 0, 0, 0});
}

TEST_CASE("selection equals a stable sort for many sizes and ratios", "[trainer][files]") {
  RandomStream stream({.seed = 1, .purpose = Purpose::initialisation});
  for (const std::size_t n : {1u, 2u, 3u, 17u, 1000u, 4097u}) {
    for (const double k : {0.1, 0.3, 0.5, 0.7, 0.9}) {
      std::vector<float> scores(n), coarse(n);
      for (std::size_t i = 0; i < n; ++i) {
        scores[i] = static_cast<float>(stream.normal());
        coarse[i] = std::round(scores[i] * 2) / 2;
      }
      CHECK(mask_of(scores, k) == sorted_mask(scores, k));
      CHECK(mask_of(coarse, k) == sorted_mask(coarse, k));
      std::vector<double> doubles(scores.begin(), scores.end());
      Mask mask(n);
      select_mask(doubles, k, mask);
      CHECK(mask == sorted_mask(scores, k));
    }
  }
}

TEST_CASE("masks are packed to one bit for each element and unpacked", "[trainer][files]") {
  const Mask mask{1, 0, 0, 1, 1, 0, 1, 0, 1, 1};
  CHECK(pack_bits(mask) == Mask{0b01011001, 0b11});
  CHECK(unpack_bits(pack_bits(mask), 10) == mask);
  CHECK(pack_bits({}).empty());
}

TEST_CASE("every golden mask is selected exactly", "[trainer][files][golden]") {
  const auto root = testing::golden("petl");
  if (!root) return;
  int ran = 0;
  for (const auto& entry : std::filesystem::directory_iterator(*root)) {
    if (!entry.path().filename().string().starts_with("mask_operator")) continue;
    const Json description = Json::parse(testing::read_file(entry.path() / "case.json"));
    const SafetensorsFile tensors = SafetensorsFile::open(entry.path() / "tensors.safetensors");
    for (const Json& wanted : description["cases"]) {
      const std::string name = wanted["scores"];
      const auto n = wanted["n"].get<std::int64_t>();
      const double k = wanted["k"];
      INFO(name << " k " << k);
      const std::vector<float> scores = tensors.contains("score." + name)
                                            ? to_floats(tensors.tensor("score." + name))
                                            : generated(n, name.find("ties") != std::string::npos);
      REQUIRE(static_cast<std::int64_t>(scores.size()) == n);
      const Mask mask = mask_of(scores, k);
      CHECK(metrics::zeros_in_mask(k, n) == wanted["zeros"]);
      CHECK(std::count(mask.begin(), mask.end(), 1) == wanted["ones"]);
      std::int64_t sum = 0;
      std::vector<std::int64_t> ones;
      for (std::int64_t i = 0; i < n; ++i) {
        if (mask[static_cast<std::size_t>(i)] == 0) continue;
        sum += i;
        ones.push_back(i);
      }
      CHECK(sum == wanted["sum_of_one_indices"]);
      const auto first = wanted["first_ones"].get<std::vector<std::int64_t>>();
      REQUIRE(first.size() <= ones.size());
      CHECK(std::equal(first.begin(), first.end(), ones.begin()));
      const std::string stored = "mask." + name + ".k" + wanted["k"].dump();
      if (tensors.contains(stored)) {
        const auto bytes = tensors.tensor(stored).bytes;
        const Mask packed = pack_bits(mask);
        REQUIRE(packed.size() == bytes.size());
        CHECK(std::memcmp(packed.data(), bytes.data(), packed.size()) == 0);
      } else {
        CHECK(n > 384);
      }
      std::vector<float> reloaded(mask.begin(), mask.end());
      CHECK(mask_of(reloaded, k) == mask);
      ++ran;
    }
    const Json delicate = Json::parse(testing::read_file(entry.path() / "delicate_counts.json"));
    for (const Json& pair : delicate["pairs"]) {
      CHECK(metrics::zeros_in_mask(pair[1].get<double>(), pair[0].get<std::int64_t>()) == pair[2]);
    }
  }
  testing::golden_ran("petl/mask_operator", ran);
}

}  // namespace
}  // namespace petlab::trainer
