#include "metrics/storage.h"

#include "tests/support/catch.h"

using namespace petlab::metrics;

TEST_CASE("the number of zeros is truncated in double, as the reference computes it", "[metrics]") {
  CHECK(zeros_in_mask(0.9, 10) == 0);
  CHECK(zeros_in_mask(0.5, 49152) == 24576);
  CHECK(zeros_in_mask(0.3, 11520) == 8063);
}
