// The inner loops over rows, compared with the formulas in plain loops of doubles.
#include "trainer/compute/row_kernels.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

#include "tests/support/catch.h"
#include "tests/trainer/files/near_numbers.h"

namespace petlab::trainer {
namespace {

TEST_CASE("the norm of a sum and its gradient match the formula", "[trainer][files]") {
  const float eps = 1e-5F;
  for (const std::int64_t width : {1, 16, 37}) {
    constexpr std::int64_t kRows = 3;
    const auto n = static_cast<std::size_t>(kRows * width);
    const auto a = normal_numbers(1, kRows * width), b = normal_numbers(2, kRows * width);
    const auto weight = normal_numbers(3, width), bias = normal_numbers(4, width);
    const auto to_output = normal_numbers(5, kRows * width);
    std::vector<double> wanted(n), wanted_gradient(n);
    for (std::size_t r = 0; r < kRows; ++r) {
      const auto w = static_cast<std::size_t>(width);
      std::vector<double> x(w), to_normalised(w);
      double mean = 0, variance = 0;
      for (std::size_t i = 0; i < w; ++i) {
        x[i] = static_cast<double>(a[r * w + i]) + static_cast<double>(b[r * w + i]);
        mean += x[i] / static_cast<double>(w);
      }
      for (const double value : x)
        variance += (value - mean) * (value - mean) / static_cast<double>(w);
      const double inverse = 1 / std::sqrt(variance + static_cast<double>(eps));
      double sum = 0, product = 0;
      for (std::size_t i = 0; i < w; ++i) {
        x[i] = (x[i] - mean) * inverse;
        wanted[r * w + i] = x[i] * static_cast<double>(weight[i]) + static_cast<double>(bias[i]);
        to_normalised[i] =
            static_cast<double>(to_output[r * w + i]) * static_cast<double>(weight[i]);
        sum += to_normalised[i] / static_cast<double>(w);
        product += to_normalised[i] * x[i] / static_cast<double>(w);
      }
      for (std::size_t i = 0; i < w; ++i) {
        wanted_gradient[r * w + i] = inverse * (to_normalised[i] - sum - x[i] * product);
      }
    }
    std::vector<float> output(n), again(n), normalised(n), inverse(kRows), gradient(n);
    add_norm_forward(kRows, width, a.data(), b.data(), weight.data(), bias.data(), eps,
                     output.data(), normalised.data(), inverse.data());
    add_norm_forward(kRows, width, a.data(), b.data(), weight.data(), bias.data(), eps,
                     again.data(), nullptr, nullptr);
    add_norm_backward(kRows, width, to_output.data(), weight.data(), normalised.data(),
                      inverse.data(), gradient.data());
    INFO("width " << width);
    check_near("output", output, wanted, 1e-5);
    check_near("output without what backward needs", again, wanted, 1e-5);
    // The deviation of a single number is 0, so its gradient is only rounding.
    if (width > 1) check_near("gradient", gradient, wanted_gradient, 1e-4);
  }
}

TEST_CASE("gelu and its derivative match the error function", "[trainer][files]") {
  std::vector<float> x;
  for (int i = -1200; i <= 1200; ++i) x.push_back(static_cast<float>(i) / 100);
  std::vector<float> output(x.size()), derivative(x.size()), alone(x.size());
  gelu_forward(static_cast<std::int64_t>(x.size()), x.data(), output.data(), derivative.data());
  gelu_forward(static_cast<std::int64_t>(x.size()), x.data(), alone.data(), nullptr);
  CHECK(alone == output);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const auto v = static_cast<double>(x[i]);
    const double phi = 0.5 * std::erfc(-v / std::sqrt(2.0));
    const double density = std::exp(-v * v / 2) / std::sqrt(2 * 3.14159265358979323846);
    INFO("at " << v);
    CHECK(std::abs(static_cast<double>(output[i]) - v * phi) < 3e-7 * std::max(1.0, std::abs(v)));
    CHECK(std::abs(static_cast<double>(derivative[i]) - (phi + v * density)) < 1e-6);
  }
}

float widened(std::uint16_t x) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(x) << 16U);
}

/// True if no bfloat16 number is nearer to `exact` and, of two equally near ones, x is even. Does
/// not handle the largest numbers.
bool is_nearest(std::uint16_t x, double exact) {
  const double away = std::abs(static_cast<double>(widened(x)) - exact);
  for (const int step : {-1, 1}) {
    const auto other = static_cast<std::uint16_t>(x + step);
    if (std::signbit(widened(other)) != std::signbit(widened(x))) continue;
    const double other_away = std::abs(static_cast<double>(widened(other)) - exact);
    if (other_away < away || (other_away == away && x % 2 != 0)) return false;
  }
  return true;
}

TEST_CASE("gelu of every bfloat16 number is gelu in float32, rounded", "[trainer][files]") {
  constexpr std::int64_t kRows = 1 << 6, kWidth = 1 << 10;
  for (const std::int64_t width : {kWidth, kWidth - 3}) {  // whole blocks, and with a remainder
    std::vector<std::uint16_t> x(kRows * kWidth);
    std::iota(x.begin(), x.end(), std::uint16_t{0});
    const std::vector<float> bias(kWidth, 0.5F);
    std::vector<std::uint16_t> output(x.size()), derivative(x.size()), alone(x.size());
    gelu_short_forward(kRows, width, x.data(), bias.data(), output.data(), derivative.data());
    gelu_short_forward(kRows, width, x.data(), bias.data(), alone.data(), nullptr);
    CHECK(alone == output);
    const auto n = static_cast<std::size_t>(kRows * width);
    std::vector<float> wide(n), wanted(n), wanted_derivative(n);
    for (std::size_t i = 0; i < n; ++i) wide[i] = widened(x[i]) + 0.5F;
    gelu_forward(kRows * width, wide.data(), wanted.data(), wanted_derivative.data());
    const auto near = [](std::uint16_t found, float exact) {
      const float value = widened(found);
      if (std::isnan(exact) || std::isinf(exact)) {
        return std::isnan(exact) ? std::isnan(value) : value == exact;
      }
      return std::abs(value - exact) <= std::abs(exact) / 256 + 1e-7F || std::isinf(value);
    };
    std::size_t far = 0;
    for (std::size_t i = 0; i < n; ++i) {
      if (!near(output[i], wanted[i]) || !near(derivative[i], wanted_derivative[i])) ++far;
    }
    CHECK(far == 0);
  }
}

TEST_CASE("products in bfloat16 are rounded to the nearest, ties to even", "[trainer][files]") {
  std::vector<std::uint16_t> a, b;
  for (std::uint32_t i = 0; i < 5000; ++i) {
    // Values around 1 of both signs with all mantissas; the product of two mantissas is exact in
    // float.
    a.push_back(static_cast<std::uint16_t>(((i % 2) << 15U) + 0x3f00U + (i * 7) % 256));
    b.push_back(static_cast<std::uint16_t>(0x3f80U + (i * 31) % 256));
  }
  std::vector<std::uint16_t> product = a;
  multiply_short(static_cast<std::int64_t>(a.size()), b.data(), product.data());
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double exact = static_cast<double>(widened(a[i])) * static_cast<double>(widened(b[i]));
    if (!is_nearest(product[i], exact)) ++wrong;
  }
  CHECK(wrong == 0);
  // NaN stays NaN, even with all bits of the mantissa set, and infinity stays infinity.
  std::vector<std::uint16_t> special{0x7fff, 0xffff, 0x7f81, 0x7f80, 0xff80, 0x8000};
  const std::vector<std::uint16_t> two(special.size(), 0x4000);
  multiply_short(static_cast<std::int64_t>(special.size()), two.data(), special.data());
  for (const std::size_t i : {0, 1, 2}) CHECK(std::isnan(widened(special[i])));
  CHECK(special[3] == 0x7f80);
  CHECK(special[4] == 0xff80);
  CHECK(special[5] == 0x8000);
}

TEST_CASE("the root mean square norm and its gradient match the formula", "[trainer][files]") {
  const float eps = 1e-6F;
  for (const std::int64_t width : {1, 16, 37}) {
    INFO("width " << width);
    constexpr std::int64_t kRows = 3;
    const auto n = static_cast<std::size_t>(kRows * width);
    const auto w = static_cast<std::size_t>(width);
    const auto x = normal_numbers(1, kRows * width), weight = normal_numbers(2, width);
    const auto to_output = normal_numbers(3, kRows * width);
    std::vector<double> wanted(n), wanted_gradient(n), wanted_roots;
    for (std::size_t r = 0; r < kRows; ++r) {
      double mean = 0, product = 0;
      const auto at = [&](const std::vector<float>& of, std::size_t i) {
        return static_cast<double>(of[r * w + i]);
      };
      for (std::size_t i = 0; i < w; ++i) mean += at(x, i) * at(x, i) / static_cast<double>(w);
      const double inverse = 1 / std::sqrt(mean + static_cast<double>(eps));
      for (std::size_t i = 0; i < w; ++i) {
        const auto by = static_cast<double>(weight[i]);
        wanted[r * w + i] = at(x, i) * inverse * by;
        product += at(to_output, i) * by * at(x, i) / static_cast<double>(w);
      }
      for (std::size_t i = 0; i < w; ++i) {
        wanted_gradient[r * w + i] = inverse * (at(to_output, i) * static_cast<double>(weight[i]) -
                                                at(x, i) * product * inverse * inverse);
      }
      wanted_roots.push_back(inverse);
    }
    std::vector<float> output(n), again(n), roots(kRows), gradient(n);
    rms_norm_forward(kRows, width, x.data(), weight.data(), eps, output.data(), roots.data());
    rms_norm_forward(kRows, width, x.data(), weight.data(), eps, again.data(), nullptr);
    rms_norm_backward(kRows, width, to_output.data(), weight.data(), x.data(), roots.data(),
                      gradient.data());
    check_near("output", output, wanted, 1e-6);
    CHECK(again == output);
    check_near("inverse roots", roots, wanted_roots, 1e-6);
    // The norm of a single number has only its sign, so its gradient is only rounding.
    if (width > 1) check_near("gradient", gradient, wanted_gradient, 1e-5);
  }
}

TEST_CASE("dropout applies its multipliers, forward and backward", "[trainer][files]") {
  constexpr std::int64_t kNumbers = 83;
  const auto n = static_cast<std::size_t>(kNumbers);
  std::vector<float> x = normal_numbers(1, kNumbers), multipliers(n);
  x[3] = 0;
  fill_dropout({.seed = 5}, 0.25, multipliers);
  const auto residual = normal_numbers(2, kNumbers), to_output = normal_numbers(3, kNumbers);
  const float scale = dropout_scale(0.25);
  for (const Dropped dropped : {Dropped::itself, Dropped::positive}) {
    for (const bool added : {false, true}) {
      INFO("positive " << (dropped == Dropped::positive) << ", added " << added);
      std::vector<float> output(n), alone(n), gradient(n);
      std::vector<std::uint8_t> kept(n, 7);
      const float* const more = added ? residual.data() : nullptr;
      drop_forward(dropped, kNumbers, x.data(), multipliers.data(), more, output.data(),
                   kept.data());
      drop_forward(dropped, kNumbers, x.data(), multipliers.data(), more, alone.data(), nullptr);
      drop_backward(kNumbers, to_output.data(), kept.data(), scale, gradient.data());
      CHECK(alone == output);
      for (std::size_t i = 0; i < n; ++i) {
        const bool gone = dropped == Dropped::positive && x[i] <= 0;
        const double through = gone ? 0 : static_cast<double>(multipliers[i]);
        const double wanted =
            static_cast<double>(x[i]) * through + (added ? static_cast<double>(residual[i]) : 0);
        CHECK(std::abs(static_cast<double>(output[i]) - wanted) < 1e-6);
        CHECK(gradient[i] == to_output[i] * static_cast<float>(through));
      }
    }
  }
}

TEST_CASE("the largest numbers of a row are sorted, earlier ones first among equals",
          "[trainer][files]") {
  for (const std::int64_t n : {1, 15, 64, 65, 200, 1000}) {
    for (const std::int64_t k : {std::int64_t{1}, std::int64_t{8}, n / 2, n}) {
      if (k < 1 || k > n) continue;
      INFO(k << " of " << n);
      auto x = normal_numbers(static_cast<std::uint64_t>(n), n);
      for (float& value : x) value = std::round(value * 4);  // makes many values equal
      for (std::size_t i = 0; i < x.size(); i += 3) {
        x[i] = -std::numeric_limits<float>::infinity();
      }
      std::vector<std::int64_t> wanted(x.size());
      std::iota(wanted.begin(), wanted.end(), 0);
      std::stable_sort(wanted.begin(), wanted.end(), [&](std::int64_t a, std::int64_t b) {
        return x[static_cast<std::size_t>(a)] > x[static_cast<std::size_t>(b)];
      });
      wanted.resize(static_cast<std::size_t>(k));
      std::vector<float> values(wanted.size());
      std::vector<std::int64_t> places(wanted.size());
      largest_of_row(n, k, x.data(), values.data(), places.data());
      CHECK(places == wanted);
      for (std::size_t i = 0; i < wanted.size(); ++i) {
        CHECK_FALSE(values[i] < x[static_cast<std::size_t>(wanted[i])]);
        CHECK_FALSE(values[i] > x[static_cast<std::size_t>(wanted[i])]);
      }
    }
  }
}

TEST_CASE("the logarithm of a sum of exponentials matches the formula", "[trainer][files]") {
  for (const std::int64_t n : {1, 16, 1003}) {
    auto x = normal_numbers(9, n);
    for (float& value : x) value = 30 * value + 500;
    const double largest = static_cast<double>(*std::max_element(x.begin(), x.end()));
    double sum = 0;
    for (const float value : x) sum += std::exp(static_cast<double>(value) - largest);
    const double wanted = largest + std::log(sum);
    CHECK(std::abs(static_cast<double>(log_sum_exp(n, x.data())) - wanted) < 1e-6 * wanted);
    x[static_cast<std::size_t>(n / 2)] = kNan;
    CHECK(std::isnan(log_sum_exp(n, x.data())));
  }
}

TEST_CASE("NaN in a row stays NaN", "[trainer][files]") {
  const std::vector<float> x{kNan, 1, -kNan, 0};
  std::vector<float> output(x.size()), derivative(x.size());
  gelu_forward(4, x.data(), output.data(), derivative.data());
  std::vector<float> normed(x.size()), dropped(x.size());
  const std::vector<float> ones(x.size(), 1);
  rms_norm_forward(1, 4, x.data(), ones.data(), 1e-6F, normed.data(), nullptr);
  drop_forward(Dropped::positive, 4, x.data(), ones.data(), nullptr, dropped.data(), nullptr);
  for (const std::size_t i : {0U, 2U}) {
    CHECK(std::isnan(output[i]));
    CHECK(std::isnan(derivative[i]));
    CHECK(std::isnan(normed[i]));
    CHECK(std::isnan(dropped[i]));
  }
  CHECK(output[3] == 0);
}

}  // namespace
}  // namespace petlab::trainer
