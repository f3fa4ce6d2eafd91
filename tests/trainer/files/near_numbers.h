#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "tests/support/catch.h"
#include "trainer/compute/random_stream.h"

namespace petlab::trainer {

inline constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

/// Draws from N(0, 1); the parameter's number determines the values.
inline std::vector<float> normal_numbers(std::uint64_t parameter, std::int64_t n) {
  std::vector<float> values(static_cast<std::size_t>(n));
  fill_normal(7, parameter, 1.0, values);
  return values;
}

template <typename T>
void check_near(const std::string& what, const std::vector<T>& found,
                const std::vector<double>& wanted, double tolerance) {
  INFO(what);
  REQUIRE(found.size() == wanted.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    INFO("at " << i);
    CHECK(std::abs(static_cast<double>(found[i]) - wanted[i]) <=
          tolerance * std::max(1.0, std::abs(wanted[i])));
  }
}

}  // namespace petlab::trainer
