#include "reports/thinning.h"

#include <algorithm>
#include <numeric>

namespace petlab::reports {

std::vector<std::size_t> thinned(std::span<const double> y, std::size_t most) {
  std::vector<std::size_t> kept;
  if (y.size() <= most) {
    kept.resize(y.size());
    std::iota(kept.begin(), kept.end(), std::size_t{0});
    return kept;
  }
  const std::size_t stretches = (most - 2) / 2;
  const std::size_t inner = y.size() - 2;
  kept.push_back(0);
  for (std::size_t i = 0; i < stretches; ++i) {
    const auto begin = y.begin() + static_cast<std::ptrdiff_t>(1 + inner * i / stretches);
    const auto end = y.begin() + static_cast<std::ptrdiff_t>(1 + inner * (i + 1) / stretches);
    if (begin == end) continue;
    const auto [low, high] = std::minmax_element(begin, end);
    const auto first = static_cast<std::size_t>(std::min(low, high) - y.begin());
    const auto second = static_cast<std::size_t>(std::max(low, high) - y.begin());
    kept.push_back(first);
    if (second != first) kept.push_back(second);
  }
  kept.push_back(y.size() - 1);
  return kept;
}

}  // namespace petlab::reports
