#include "questions/sparkline.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

namespace petlab::questions {

std::string sparkline(std::span<const std::optional<double>> values, std::size_t width) {
  static constexpr std::array kBars = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  const std::size_t bars = std::min(values.size(), width);
  std::vector<std::optional<double>> heights(bars);
  for (std::size_t bar = 0; bar < bars; ++bar) {
    double sum = 0;
    std::size_t n = 0;
    const std::size_t end = (bar + 1) * values.size() / bars;
    for (std::size_t i = bar * values.size() / bars; i < end; ++i) {
      if (!values[i] || !std::isfinite(*values[i])) continue;
      ++n;
      sum += (*values[i] - sum) / static_cast<double>(n);  // running mean, which cannot overflow
    }
    if (n > 0 && std::isfinite(sum)) heights[bar] = sum;
  }
  double low = INFINITY;
  double high = -INFINITY;
  for (const auto& height : heights) {
    if (!height) continue;
    low = std::min(low, *height);
    high = std::max(high, *height);
  }
  std::string line;
  for (const auto& height : heights) {
    if (!height) {
      line += ' ';
    } else if (high == low) {
      line += "▄";
    } else {
      // Halved first, because the difference of the largest doubles would overflow.
      const double place = (*height / 2 - low / 2) / (high / 2 - low / 2);
      line += kBars[std::min<std::size_t>(kBars.size() - 1,
                                          static_cast<std::size_t>(place * kBars.size()))];
    }
  }
  return line;
}

}  // namespace petlab::questions
