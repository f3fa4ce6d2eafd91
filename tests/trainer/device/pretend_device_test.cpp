// Tests of the pretend device itself: what a GPU cannot do must fail.
#include "tests/trainer/device/pretend_device.h"

#include <c10/core/CachingDeviceAllocator.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "tests/support/catch.h"

using namespace petlab::testing;
using petlab::trainer::Tensor;

namespace {

Tensor ones_there() { return at::ones({3, 4}, at::TensorOptions().device(pretend_device())); }

}  // namespace

TEST_CASE("reading the pretend device's memory on the host faults", "[trainer][device][pretend]") {
  const Tensor there = ones_there();
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    std::signal(SIGSEGV, SIG_DFL);
    // The processor detects this read; sanitisers do not.
    const volatile float* const data = static_cast<const float*>(there.const_data_ptr());
    ::_exit(data[0] == 1 ? 0 : 1);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(WIFSIGNALED(status));
  CHECK(WTERMSIG(status) == SIGSEGV);
}

TEST_CASE("tensors of the host and of the pretend device cannot be mixed",
          "[trainer][device][pretend]") {
  const Tensor there = ones_there();
  const Tensor here = at::ones({3, 4});
  CHECK_THROWS_AS(there + here, c10::Error);
  CHECK_THROWS_AS(at::mm(there, here.t()), c10::Error);
  CHECK_THROWS_AS(there.index_select(0, at::tensor({0, 1}, at::kLong)), c10::Error);
  // A scalar on the host is allowed, as for a GPU.
  CHECK((there + at::ones({})).to(at::kCPU).equal(here + 1));
}

TEST_CASE("the pretend device counts the host's waits", "[trainer][device][pretend]") {
  const Tensor there = ones_there();
  DeviceCounts before = device_counts();
  const Tensor sum = there.sum();
  DeviceCounts counts = counted(before, device_counts());
  CHECK(counts.kernels > 0);
  CHECK(counts.synchronisations == 0);
  CHECK(counts.copies_in + counts.copies_out == 0);

  before = device_counts();
  CHECK(sum.item<float>() == 12);
  CHECK(counted(before, device_counts()).synchronisations == 1);

  before = device_counts();
  CHECK(there.to(at::kCPU).sum().item<float>() == 12);
  counts = counted(before, device_counts());
  CHECK(counts.copies_out == 1);
  CHECK(counts.synchronisations == 1);

  const Tensor here = at::ones({2});
  before = device_counts();
  const Tensor waited = here.to(pretend_device());
  CHECK(counted(before, device_counts()).synchronisations == 1);
  // As on a GPU, only a non-blocking copy from page-locked memory does not wait.
  before = device_counts();
  const Tensor still_waited = here.to(pretend_device(), /*non_blocking=*/true);
  CHECK(counted(before, device_counts()).synchronisations == 1);
  const Tensor pinned = here.pin_memory();
  CHECK(pinned.is_pinned());
  CHECK_FALSE(here.is_pinned());
  before = device_counts();
  const Tensor not_waited = pinned.to(pretend_device(), /*non_blocking=*/true);
  counts = counted(before, device_counts());
  CHECK(counts.copies_in == 1);
  CHECK(counts.bytes_in == 8);
  CHECK(counts.synchronisations == 0);
}

TEST_CASE("unwritten memory of the pretend device is NaN", "[trainer][device][pretend]") {
  const Tensor there = at::empty({100}, at::TensorOptions().device(pretend_device()));
  CHECK(there.to(at::kCPU).isnan().all().item<bool>());
}

TEST_CASE("the pretend device counts its memory in use, and allocates no more than its limit",
          "[trainer][device][pretend]") {
  c10::DeviceAllocator* const allocator = c10::getDeviceAllocator(pretend_device().type());
  const auto held = [&] { return allocator->getDeviceStats(0).reserved_bytes[0]; };
  const auto megabyte = [] {
    return at::empty({1 << 18}, at::TensorOptions().device(pretend_device()));
  };
  allocator->emptyCache();
  allocator->resetPeakStats(0);
  const std::int64_t before = held().current;
  {
    const Tensor one = megabyte();
    const Tensor two = megabyte();
    CHECK(held().current == before + (2 << 20));
  }
  // Freed blocks are cached, so they still count.
  CHECK(held().current == before + (2 << 20));
  allocator->emptyCache();
  CHECK(held().current == before);
  CHECK(held().peak == before + (2 << 20));
  allocator->resetPeakStats(0);
  CHECK(held().peak == before);

  limit_device_memory(static_cast<std::size_t>(before) + (1 << 20));
  {
    const Tensor one = megabyte();
    CHECK_THROWS_AS(megabyte(), c10::OutOfMemoryError);
  }
  limit_device_memory(0);
  CHECK_NOTHROW(megabyte());
}

TEST_CASE("gradients are computed on the pretend device", "[trainer][device][pretend]") {
  const Tensor x = ones_there().requires_grad_(true);
  (at::softmax(x * 2, 1) * x).sum().backward();
  const Tensor wanted = at::ones({3, 4}).requires_grad_(true);
  (at::softmax(wanted * 2, 1) * wanted).sum().backward();
  CHECK(x.grad().device() == pretend_device());
  CHECK(at::allclose(x.grad().to(at::kCPU), wanted.grad()));
}
