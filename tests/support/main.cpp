// The main function of all test programs. Catch2 v2 has no skipped cases, so they are counted here.
#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
using Listener = Catch::EventListenerBase;
#else
#define CATCH_CONFIG_RUNNER
#include <catch2/catch.hpp>
using Listener = Catch::TestEventListenerBase;
#endif

#include <cstdio>

#include "tests/support/skip.h"

namespace {

int cases_run = 0;
int cases_skipped = 0;
bool this_one_skipped = false;

class SkippedCases : public Listener {
 public:
  using Listener::Listener;
  void testCaseStarting(const Catch::TestCaseInfo&) override { this_one_skipped = false; }
  void testCaseEnded(const Catch::TestCaseStats&) override {
    ++cases_run;
    if (this_one_skipped) ++cases_skipped;
  }
};
CATCH_REGISTER_LISTENER(SkippedCases)

}  // namespace

namespace petlab::testing {

void skip(const std::string& why) {
  this_one_skipped = true;
  std::printf("skipped: %s\n", why.c_str());
}

}  // namespace petlab::testing

int main(int argc, char** argv) {
  // Catch2 returns the number of failed assertions, which may not be a valid exit code.
  if (Catch::Session().run(argc, argv) != 0) return 1;
  const bool all_skipped = cases_run > 0 && cases_skipped == cases_run;
  return all_skipped ? petlab::testing::kSkippedExitCode : 0;
}
