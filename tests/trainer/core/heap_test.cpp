// What freed memory costs when it is wanted again.
#include <sys/resource.h>

#include "tests/support/catch.h"
#include "trainer/compute/torch.h"

namespace {

long new_pages() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
}

/// As a feed-forward has them of as many tokens, freed together.
void use_three_buffers(std::int64_t tokens) {
  const auto buffer = [&] { return at::full({tokens, 3072}, 1.0, at::kFloat); };
  const at::Tensor a = buffer(), b = buffer(), c = buffer();
}

}  // namespace

TEST_CASE("large buffers that were freed are used again without new pages", "[trainer]") {
  for (const std::int64_t tokens : {100, 1500, 4096}) {  // 1, 18 and 48 MiB each
    INFO(tokens << " tokens");
    use_three_buffers(tokens);
    const long before = new_pages();
    for (int i = 0; i < 5; ++i) use_three_buffers(tokens);
    CHECK(new_pages() - before < 100);
  }
}
