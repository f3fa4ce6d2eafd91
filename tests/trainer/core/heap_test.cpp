// Reusing freed memory must not cost page faults.
#include <sys/resource.h>

#include "tests/support/catch.h"
#include "trainer/compute/torch.h"

namespace {

long new_pages() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
}

/// Allocates and frees three buffers of the size that a feed-forward layer needs.
void use_three_buffers(std::int64_t tokens) {
  const auto buffer = [&] { return at::full({tokens, 3072}, 1.0, at::kFloat); };
  const at::Tensor a = buffer(), b = buffer(), c = buffer();
}

}  // namespace

TEST_CASE("freed large buffers are reused without page faults", "[trainer]") {
  for (const std::int64_t tokens : {100, 1500, 4096}) {  // 1, 18 and 48 MiB each
    INFO(tokens << " tokens");
    use_three_buffers(tokens);
    const long before = new_pages();
    for (int i = 0; i < 5; ++i) use_three_buffers(tokens);
    CHECK(new_pages() - before < 100);
  }
}
