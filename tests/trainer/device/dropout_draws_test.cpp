// Dropout drawn on a device equals the host's to the last bit.
#include "trainer/compute/dropout_draws.h"

#include "tests/support/catch.h"
#include "tests/trainer/device/tested_device.h"
#include "trainer/compute/tensors.h"

using namespace petlab::trainer;
using petlab::testing::counted;
using petlab::testing::device_counts;
using petlab::testing::DeviceCounts;
using petlab::testing::tested_device;

namespace {

/// Rows of several trials, including a padding row of a batch.
std::vector<RowKey> some_rows(std::int64_t trials) {
  std::vector<RowKey> rows;
  for (std::int64_t k = 0; k < trials; ++k) {
    for (std::int64_t r = 0; r < 7; ++r) rows.push_back({k, 1000003 * r + k, r % 4});
  }
  rows.push_back({trials - 1, 0xFFFFFFFF, 77});
  return rows;
}

Dropout some_dropout(std::size_t trials) {
  const std::vector<std::uint64_t> seeds{42, 0xFEDCBA9876543210, 7};
  Dropout dropout;
  dropout.step = 4000000000;
  dropout.seeds.assign(seeds.begin(), seeds.begin() + static_cast<std::ptrdiff_t>(trials));
  return dropout;
}

DrawnPlaces places_of(Purpose purpose, std::int64_t layers) {
  DrawnPlaces places;
  for (std::int64_t l = 0; l < layers; ++l) places.push_back({purpose, l});
  return places;
}

}  // namespace

TEST_CASE("dropout drawn on a device has the host's numbers", "[trainer][device]") {
  const std::size_t trials = GENERATE(1, 3);
  const std::int64_t width = GENERATE(1, 7, 8, 20, 48);
  const double p = GENERATE(1.0 / 65536, 0.1, 0.5, 0.9, 0.99999);
  const at::Device device = GENERATE(at::Device(at::kCPU), tested_device());
  const std::vector<RowKey> rows = some_rows(static_cast<std::int64_t>(trials));
  Dropout dropout = some_dropout(trials);
  constexpr std::int64_t layers = 5;
  dropout.round_keys = dropout_round_keys(dropout.seeds, layers, device);
  const std::vector<Purpose> purposes{Purpose::embedding_dropout,
                                      Purpose::feed_forward_inner_dropout};
  DropoutDraws draws(rows, {places_of(purposes[0], layers), places_of(purposes[1], layers)},
                     device);
  for (const Purpose purpose : purposes) {
    for (std::int64_t layer = 0; layer < layers; ++layer) {
      const Tensor kept = draws.kept(dropout, {purpose, layer}, p, width);
      const Tensor found = drop_by(at::ones({static_cast<std::int64_t>(rows.size()), width},
                                            at::TensorOptions().device(device)),
                                   kept, p);
      const Tensor wanted =
          dropout_multipliers({dropout, p, purpose, layer, rows}, width, at::kFloat);
      CHECK(found.to(at::kCPU).equal(wanted));
    }
  }
}

TEST_CASE("a trial's dropout does not depend on the trials trained with it", "[trainer][device]") {
  const std::vector<RowKey> all = some_rows(3);
  Dropout dropout = some_dropout(3);
  dropout.round_keys = dropout_round_keys(dropout.seeds, 1, tested_device());
  const DrawnPlace place{Purpose::head_input_dropout, 0};
  DropoutDraws draws(all, {{place}}, tested_device());
  const Tensor kept = draws.kept(dropout, place, 0.3, 20).to(at::kCPU);
  std::vector<RowKey> second(all.begin() + 7, all.begin() + 14);
  for (RowKey& row : second) row.trial = 0;
  DropoutDraws alone(second, {{place}}, tested_device());
  CHECK(alone.kept(dropout.of_trial(1), place, 0.3, 20).to(at::kCPU).equal(kept.narrow(0, 7, 7)));
}

TEST_CASE("dropout is drawn at once for few rows, in parts for many",
          "[trainer][device][pretend]") {
  const std::int64_t rows = GENERATE(20, 60000);
  Dropout dropout = some_dropout(1);
  const DrawnPlaces places = places_of(Purpose::attention_output_dropout, 12);
  dropout.round_keys = dropout_round_keys(dropout.seeds, 12, tested_device());
  std::vector<RowKey> keys;
  for (std::int64_t r = 0; r < rows; ++r) keys.push_back({0, r, 0});
  DropoutDraws draws(keys, {places}, tested_device());
  std::int64_t drawn = 0;
  for (const DrawnPlace& place : places) {
    const DeviceCounts before = device_counts();
    draws.kept(dropout, place, 0.1, 24);
    const DeviceCounts counts = counted(before, device_counts());
    CHECK(counts.copies_in == 0);
    CHECK(counts.synchronisations == 0);
    CHECK(counts.kernels < 120);
    if (counts.kernels > 0) ++drawn;
  }
  // With many rows, a place has 180,000 blocks; at most a million are drawn at once.
  CHECK(drawn == (rows == 20 ? 1 : 3));
  CHECK_THROWS_WITH(draws.kept(dropout, {Purpose::final_dropout, 3}, 0.1, 24),
                    "dropout was not announced for purpose 16 of layer 3");
}

TEST_CASE("gradients of dropout on a device match its multipliers", "[trainer][device]") {
  const std::vector<RowKey> rows = some_rows(1);
  Dropout dropout = some_dropout(1);
  dropout.round_keys = dropout_round_keys(dropout.seeds, 1, tested_device());
  DropoutDraws draws(rows, {{{Purpose::final_dropout, 0}}}, tested_device());
  const DropoutPlace place{dropout, 0.25, Purpose::final_dropout, 0, rows, &draws};
  const Tensor multipliers = dropout_multipliers(place, 20, at::kDouble);
  const Tensor x = (at::arange(8 * 20, at::kDouble).view({8, 20}) - 50);
  const Tensor there = on_device(x, tested_device()).requires_grad_(true);
  const Tensor output = add_dropped(there, there.detach(), place) + drop_positive(there, place);
  output.sum().backward();
  CHECK(output.detach().to(at::kCPU).equal((x + x * multipliers) + at::relu(x) * multipliers));
  CHECK(there.grad().to(at::kCPU).equal(multipliers + multipliers * (x > 0)));
  CHECK_THROWS_AS(drop(there, {dropout, 0.25, Purpose::final_dropout, 0, rows}), std::logic_error);
}
