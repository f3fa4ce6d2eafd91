#include "trainer/compute/error_text.h"

#include <c10/util/Exception.h>

#include <new>
#include <stdexcept>
#include <string>

#include "tests/support/catch.h"

namespace petlab::trainer {
namespace {

TEST_CASE("a LibTorch error's message is its first line, without a C++ stack", "[trainer]") {
  try {
    TORCH_CHECK(false, "the shapes differ\nby one");
    FAIL("no error");
  } catch (const std::exception& error) {
    CHECK(std::string(error.what()).find("Exception raised from") != std::string::npos);
    CHECK(message_of(error) == "the shapes differ");
  }
  CHECK(message_of(std::bad_alloc()) == "not enough memory");
  CHECK(message_of(std::runtime_error("a.yaml:1: is 3\na.yaml:2: is 4")) ==
        "a.yaml:1: is 3\na.yaml:2: is 4");
}

}  // namespace
}  // namespace petlab::trainer
