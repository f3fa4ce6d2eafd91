#include "metrics/mcnemar.h"

#include <fmt/core.h>

#include <algorithm>
#include <boost/math/distributions/binomial.hpp>
#include <stdexcept>

namespace petlab::metrics {

McNemarTest mcnemar(std::int64_t only_a, std::int64_t only_b) {
  if (only_a < 0 || only_b < 0) {
    throw std::invalid_argument(fmt::format(
        "McNemar's test got the counts {} and {}; both must be at least 0", only_a, only_b));
  }
  McNemarTest test{.only_a = only_a, .only_b = only_b};
  if (only_a == only_b) return test;
  const boost::math::binomial coin(static_cast<double>(only_a + only_b), 0.5);
  const auto fewer = static_cast<double>(std::min(only_a, only_b));
  const double at_most = boost::math::cdf(coin, fewer);
  const double below = fewer > 0 ? boost::math::cdf(coin, fewer - 1) : 0;
  test.p = std::min(1.0, 2 * at_most);
  test.mid_p = at_most + below;
  return test;
}

}  // namespace petlab::metrics
