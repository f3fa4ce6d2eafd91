#include <string>

#include "tests/fuzz/exchange_inputs.h"
#include "tests/fuzz/tampered.h"
#include "tests/support/catch.h"

using namespace petlab;

TEST_CASE("A tampered archive list is refused, or names files of a runs folder", "[exchange]") {
  fuzz::try_tampered(R"({"v":1,"kind":"petlab archive","petlab":"0.1.0","left_out":{},"files":[)"
                     R"({"name":"runs/sweeps/s.json","size":3,"digest":"sha256:)" +
                         std::string(64, 'a') + R"("}]})",
                     3000, fuzz::kJson, fuzz::archive_list);
}
