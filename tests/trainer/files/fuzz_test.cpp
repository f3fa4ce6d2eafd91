#include <cstdio>
#include <string>

#include "tests/fuzz/files_inputs.h"
#include "tests/support/catch.h"
#include "trainer/compute/random_stream.h"

namespace petlab::fuzz {
namespace {

TEST_CASE("readers of users' files fail cleanly on damaged input", "[trainer][files]") {
  for (const FilesTarget& target : files_targets()) {
    INFO(target.name);
    std::uint64_t number = 0;
    for (const std::string& seed : target.seeds()) {
      REQUIRE_NOTHROW(target.run(seed));
      for (std::size_t size = 0; size < seed.size(); ++size) {
        INFO("cut to " << size);
        REQUIRE_NOTHROW(target.run(std::string_view(seed).substr(0, size)));
      }
      constexpr int kChanges = 400;
      for (int i = 0; i < kChanges; ++i, ++number) {
        trainer::RandomStream stream({.seed = 1, .step = number});
        std::string changed = seed;
        for (std::uint64_t left = stream.below(4) + 1; left-- > 0;) {
          changed[stream.below(changed.size())] = static_cast<char>(stream.below(256));
        }
        INFO("change " << i);
        REQUIRE_NOTHROW(target.run(changed));
      }
    }
  }
}

}  // namespace
}  // namespace petlab::fuzz
