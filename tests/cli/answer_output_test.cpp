#include "cli/output/answer_output.h"

#include "tests/support/catch.h"

namespace petlab::cli {
namespace {

TEST_CASE("Numbers for people have four significant digits and at most four decimals", "[cli]") {
  CHECK(short_number(0) == "0.0000");
  CHECK(short_number(0.012345) == "0.0123");
  CHECK(short_number(0.76543) == "0.7654");
  CHECK(short_number(-7.6543) == "−7.654");
  CHECK(short_number(76.543) == "76.54");
  CHECK(short_number(765.43) == "765.4");
  CHECK(short_number(76543.2) == "76,543");
  CHECK(short_number(-0.000335) == "−3.35e-04");
}

TEST_CASE("A deviation has the decimals of its mean", "[cli]") {
  CHECK(short_number(0.0000665, 0.6417) == "0.0001");
  CHECK(short_number(0.0000665, 76.5) == "0.00");
  CHECK(short_number(2.5, 0.5) == "2.5000");
  CHECK(short_number(0.5, 0.0001) == "5.00e-01");
  CHECK(short_number(0.5, 0.0) == "0.5000");
}

}  // namespace
}  // namespace petlab::cli
