#include "cli/output/counted.h"

#include "tests/support/catch.h"

namespace petlab::cli {

TEST_CASE("A size is shown in the largest unit that it reaches", "[cli]") {
  constexpr std::uintmax_t kKiB = 1024;
  CHECK(bytes_text(0) == "0 bytes");
  CHECK(bytes_text(1) == "1 byte");
  CHECK(bytes_text(kKiB - 1) == "1023 bytes");
  CHECK(bytes_text(kKiB) == "1.0 KiB");
  CHECK(bytes_text(kKiB * 1000) == "1000.0 KiB");
  CHECK(bytes_text(kKiB * kKiB) == "1.0 MiB");
  CHECK(bytes_text(kKiB * kKiB * 3 / 2) == "1.5 MiB");
  CHECK(bytes_text(kKiB * kKiB * kKiB) == "1.0 GiB");
  CHECK(bytes_text(kKiB * kKiB * kKiB * kKiB) == "1.0 TiB");
  CHECK(bytes_text(kKiB * kKiB * kKiB * kKiB * kKiB) == "1024.0 TiB");
}

}  // namespace petlab::cli
