#include "trainer/data/splits.h"

#include <fmt/format.h>

#include <limits>
#include <numeric>
#include <random>
#include <stdexcept>
#include <utility>

namespace petlab::trainer {

std::vector<std::int64_t> torch_randperm(std::int64_t n, std::uint64_t seed) {
  // Larger permutations are refused: torch draws 64 bits per number for them, and no data set is
  // that large.
  constexpr std::int64_t kFirstOther = std::numeric_limits<std::uint32_t>::max() / 20;
  if (n < 0 || n >= kFirstOther) {
    throw std::invalid_argument(fmt::format("n is {}, must be in 0..{}", n, kFirstOther - 1));
  }
  std::vector<std::int64_t> order(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  std::mt19937 generator(static_cast<std::uint32_t>(seed));
  for (std::size_t i = 0; i + 1 < order.size(); ++i) {
    std::swap(order[i], order[i + generator() % (order.size() - i)]);
  }
  return order;
}

}  // namespace petlab::trainer
