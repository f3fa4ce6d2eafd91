#include "trainer/compute/random_stream.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "metrics/storage.h"
#include "tests/support/catch.h"

namespace petlab::trainer {
namespace {

using Block = std::array<std::uint32_t, 4>;

TEST_CASE("Philox gives the published known answers", "[trainer][files]") {
  CHECK(philox({0, 0, 0, 0}, {0, 0}) == Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  CHECK(philox({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}) ==
        Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
        Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("each place has a stream of its own, the same each time", "[trainer][files]") {
  const StreamPlace place{.seed = 42,
                          .purpose = Purpose::embedding_dropout,
                          .step = 3,
                          .layer = 2,
                          .example = 7,
                          .position = 5};
  RandomStream stream(place);
  RandomStream again(place);
  std::set<std::uint32_t> first{stream.next_u32()};
  CHECK(*first.begin() == again.next_u32());
  for (auto change : {&StreamPlace::seed, &StreamPlace::step, &StreamPlace::layer,
                      &StreamPlace::example, &StreamPlace::position}) {
    StreamPlace other = place;
    ++(other.*change);
    first.insert(RandomStream(other).next_u32());
  }
  StreamPlace other = place;
  other.purpose = Purpose::attention_dropout;
  first.insert(RandomStream(other).next_u32());
  other = place;
  other.seed += std::uint64_t{1} << 32;
  first.insert(RandomStream(other).next_u32());
  CHECK(first.size() == 8);
}

TEST_CASE("dropout of a shorter row equals the beginning of a longer row's", "[trainer][files]") {
  const StreamPlace place{.seed = 1, .purpose = Purpose::attention_dropout, .example = 9};
  std::vector<float> longer(1000), shorter(77);
  fill_dropout(place, 0.1, longer);
  fill_dropout(place, 0.1, shorter);
  CHECK(std::equal(shorter.begin(), shorter.end(), longer.begin()));
  const auto dropped = std::count(longer.begin(), longer.end(), 0.0f);
  CHECK(dropped > 60);
  CHECK(dropped < 140);
  CHECK(*std::max_element(longer.begin(), longer.end()) == Approx(1 / 0.9).epsilon(1e-4));
  std::vector<float> none(10);
  fill_dropout(place, 0, none);
  CHECK(none == std::vector<float>(10, 1.0f));
  // Block 0 of the place determines the first eight elements.
  RandomStream stream(place);
  for (int word = 0; word < 4; ++word) {
    const std::uint32_t bits = stream.next_u32();
    CHECK((longer[static_cast<std::size_t>(2 * word)] == 0) == ((bits & 0xffff) < 6554));
    CHECK((longer[static_cast<std::size_t>(2 * word + 1)] == 0) == ((bits >> 16) < 6554));
  }
}

TEST_CASE("dropout just below 1 keeps some elements, and scales them", "[trainer][files]") {
  const double p = std::nextafter(1.0, 0.0);
  CHECK(dropout_scale(p) == 65536);
  CHECK(dropout_scale(0.5) == 2);
  CHECK(dropout_scale(0) == 1);
  std::vector<float> row(1 << 20);
  fill_dropout({.seed = 1, .purpose = Purpose::attention_dropout}, p, row);
  // About 16 of 2^20 are expected.
  const auto left = std::count_if(row.begin(), row.end(), [](float m) { return m != 0; });
  CHECK(left > 3);
  CHECK(left < 40);
  CHECK(*std::max_element(row.begin(), row.end()) == 65536);
}

TEST_CASE("epoch order is a permutation keyed by seed, task and epoch", "[trainer][files]") {
  const auto order = epoch_order(42, 0, 0, 100);
  CHECK(order == epoch_order(42, 0, 0, 100));
  CHECK(order != epoch_order(42, 0, 1, 100));
  CHECK(order != epoch_order(42, 1, 0, 100));
  CHECK(epoch_order(42, 0, 1, 100) != epoch_order(42, 1, 0, 100));
  CHECK(order != epoch_order(43, 0, 0, 100));
  auto sorted = order;
  std::sort(sorted.begin(), sorted.end());
  for (std::int64_t i = 0; i < 100; ++i) CHECK(sorted[static_cast<std::size_t>(i)] == i);
  // Frozen: changing this order changes the results of every trial.
  CHECK(epoch_order(42, 0, 0, 10) == std::vector<std::int64_t>{0, 8, 2, 7, 4, 6, 5, 3, 9, 1});
}

TEST_CASE("initial values have the requested range and moments", "[trainer][files]") {
  std::vector<float> values(20000);
  fill_normal(42, 1, 0.02, values);
  double sum = 0, squares = 0;
  for (const float value : values) {
    sum += static_cast<double>(value);
    squares += static_cast<double>(value) * static_cast<double>(value);
  }
  CHECK(std::abs(sum / 20000) < 5e-4);
  CHECK(std::sqrt(squares / 20000) == Approx(0.02).epsilon(0.02));
  fill_uniform(42, 1, 0.5, values);
  CHECK(*std::min_element(values.begin(), values.end()) >= -0.5f);
  CHECK(*std::max_element(values.begin(), values.end()) < 0.5f);
  CHECK(*std::min_element(values.begin(), values.end()) < -0.499f);
  CHECK(*std::max_element(values.begin(), values.end()) > 0.499f);
}

TEST_CASE("initial values follow the documented stream", "[trainer][files]") {
  // Computed by tests/golden/training/make_training.py from the description of this module.
  std::vector<float> values(4);
  fill_normal(42, 5, 0.5, values);
  CHECK(values == std::vector<float>{-0.29291272f, -0.27637014f, -0.011376482f, 0.4953886f});
  fill_uniform(42, 5, 0.5, values);
  CHECK(values == std::vector<float>{-0.3988161f, 0.20587796f, 0.32106066f, 0.07869238f});
}

TEST_CASE("a random mask has exactly as many ones as a learned one", "[trainer][files]") {
  for (const double k : {0.0, 0.1, 0.5, 0.9, 1.0}) {
    std::vector<std::uint8_t> mask(1001), other(1001), task(1001);
    fill_random_mask(Purpose::random_mask, 42, 3, 0, k, mask);
    fill_random_mask(Purpose::random_mask, 42, 3, 1, k, other);
    fill_random_mask(Purpose::random_task_mask, 42, 3, 0, k, task);
    const auto zeros = metrics::zeros_in_mask(k, 1001);
    CHECK(std::count(mask.begin(), mask.end(), 0) == zeros);
    CHECK(std::count(task.begin(), task.end(), 0) == zeros);
    if (zeros > 0 && zeros < 1001) {
      CHECK(mask != other);
      CHECK(mask != task);
    }
  }
}

TEST_CASE("numbers below a bound are drawn equally often", "[trainer][files]") {
  RandomStream stream({.seed = 5});
  std::array<int, 7> counts{};
  for (int i = 0; i < 7000; ++i) ++counts[stream.below(7)];
  for (const int count : counts) {
    CHECK(count > 850);
    CHECK(count < 1150);
  }
}

}  // namespace
}  // namespace petlab::trainer
