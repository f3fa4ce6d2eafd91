// Dropout, sums and norms of rows on a device have the CPU's numbers and gradients.
#include "tests/support/catch.h"
#include "tests/trainer/core/golden_tensors.h"
#include "tests/trainer/device/emulated_kernels.h"
#include "tests/trainer/device/tested_device.h"
#include "trainer/compute/dropout_draws.h"
#include "trainer/compute/operations.h"
#include "trainer/compute/tensors.h"

using namespace petlab::trainer;
using petlab::testing::check_relative;
using petlab::testing::emulated_launches;
using petlab::testing::emulates_kernels;
using petlab::testing::normal_rows;
using petlab::testing::tested_device;

namespace {

struct Computed {
  Tensor dropped, normed, to_a, to_b;
};

/// Computes drop(a) and norm(drop(a) + b), and the gradients of what `uses` says: 1 the norm, 2 the
/// dropped numbers, 3 both.
Computed computed_on(at::Device device, at::ScalarType type, std::int64_t width, double p, int uses,
                     std::size_t trials) {
  std::vector<RowKey> keys;
  for (std::int64_t r = 0; r < 9; ++r)
    keys.push_back({r * std::int64_t(trials) / 9, 1000 + r, r % 4});
  const auto rows = static_cast<std::int64_t>(keys.size());
  const auto there = [&](const Tensor& of) { return on_device(of.to(type), device); };
  const LayerNorm norm{there(normal_rows(1, width, 1).view({width})),
                       there(normal_rows(1, width, 2).view({width})), 1e-5};
  const Tensor a = there(normal_rows(rows, width, 3)).requires_grad_(true);
  const Tensor b = there(normal_rows(rows, width, 4)).requires_grad_(true);
  Dropout dropout;
  dropout.step = 5;
  dropout.seeds = {42, 0xFEDCBA9876543210, 7};
  dropout.seeds.resize(trials);
  const DrawnPlace at{Purpose::feed_forward_output_dropout, 1};
  std::optional<DropoutDraws> draws;
  if (!device.is_cpu()) draws.emplace(keys, std::vector<DrawnPlaces>{{at}}, device);
  const DropoutPlace place{dropout, p, at.purpose, at.layer, keys, draws ? &*draws : nullptr};
  const DroppedAndNormed both = dropped_and_normed(a, b, norm, p > 0 ? &place : nullptr);
  Tensor total = at::zeros({}, a.options());
  if ((uses & 1) != 0) total = total + (both.normed * there(normal_rows(rows, width, 5))).sum();
  if ((uses & 2) != 0) total = total + (both.dropped * there(normal_rows(rows, width, 6))).sum();
  total.backward();
  const auto here = [](const Tensor& of) {
    return of.defined() ? of.detach().to(at::kCPU).to(at::kDouble) : of;
  };
  return {here(both.dropped), here(both.normed), here(a.grad()), here(b.grad())};
}

}  // namespace

TEST_CASE("dropout and norm of rows on a device have the CPU's numbers and gradients",
          "[trainer][device]") {
  // Widths around those of a lane (8) and of a warp's visit (256).
  const std::int64_t width = GENERATE(2, 7, 8, 255, 256, 300);
  const double p = GENERATE(0.0, 0.3);
  const int uses = GENERATE(1, 2, 3);
  const std::size_t trials = GENERATE(1, 3);
  INFO("width " << width << ", p " << p << ", uses " << uses << ", trials " << trials);
  const std::int64_t before = emulated_launches();
  const Computed found = computed_on(tested_device(), at::kDouble, width, p, uses, trials);
  // Without dropout, a is dropped(a), and no gradient passes through the norm.
  const int wanted_launches = p == 0 && uses == 2 ? 1 : 2;
  if (emulates_kernels()) CHECK(emulated_launches() - before == wanted_launches);
  const Computed wanted = computed_on(at::kCPU, at::kDouble, width, p, uses, trials);
  CHECK(found.dropped.eq(0).equal(wanted.dropped.eq(0)));
  check_relative("dropped", found.dropped, wanted.dropped, 1e-10);
  check_relative("normed", found.normed, wanted.normed, 1e-10);
  check_relative("gradient of a", found.to_a, wanted.to_a, 1e-10);
  if (uses != 2) check_relative("gradient of b", found.to_b, wanted.to_b, 1e-10);

  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    const double tolerance = type == at::kFloat ? 1e-5 : 2e-2;
    const Computed rough = computed_on(tested_device(), type, width, p, uses, trials);
    check_relative("dropped", rough.dropped, wanted.dropped, tolerance);
    // The norm of two numbers is their sign, if they differ by more than rounding.
    if (width > 2) check_relative("normed", rough.normed, wanted.normed, tolerance);
  }
}

TEST_CASE("a norm keeps rows apart that have NaN or infinity", "[trainer][device]") {
  Tensor rows = normal_rows(5, 20, 1);
  rows[1][3] = std::numeric_limits<float>::quiet_NaN();
  rows[3][19] = std::numeric_limits<float>::infinity();
  const auto there = [](const Tensor& of) { return on_device(of, tested_device()); };
  const LayerNorm norm{there(at::ones({20})), there(at::zeros({20})), 1e-5};
  const Tensor found = add_norm(there(rows), there(normal_rows(5, 20, 2)), norm).to(at::kCPU);
  CHECK(found.isnan().all(1).equal(at::tensor({0, 1, 0, 1, 0}).to(at::kBool)));
  CHECK(found.index_select(0, at::tensor({0, 2, 4})).isfinite().all().item<bool>());
}
