#include "base/invariant.h"

#include <unistd.h>

#include <string>

#include "tests/support/broken_invariant.h"
#include "tests/support/catch.h"

using petlab::testing::broken_invariant;

TEST_CASE("An invariant that does not hold ends the process with what was found", "[base]") {
  int described = 0;
  const auto found = [&] {
    ++described;
    return std::string("2 is 3");
  };
  PETLAB_INVARIANT(described == 0, found());
  CHECK(described == 0);
  CHECK(broken_invariant([&] { PETLAB_INVARIANT(described == 1, found()); }) == "2 is 3");
  // Nothing is caught, and nothing that a destructor would write is written.
  CHECK(broken_invariant([&] {
          struct Last {
            ~Last() { ::_exit(0); }
          } last;
          try {
            PETLAB_INVARIANT(false, "found");
          } catch (...) {
          }
        }) == "found");
}
