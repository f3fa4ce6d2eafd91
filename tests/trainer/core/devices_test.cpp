#include "trainer/compute/devices.h"

#include "tests/support/catch.h"

using namespace petlab::trainer;

TEST_CASE("every listed device can be trained on", "[trainer]") {
  for (const std::string& device : devices()) CHECK(why_not_on(device) == std::nullopt);
}

TEST_CASE("a trial is placed on its device", "[trainer]") {
  CHECK(placement_on("cpu") == Placement());
  CHECK(placement_on("cuda").device == at::Device(at::kCUDA, 0));
}

TEST_CASE("the reason why a device cannot be used is one line", "[trainer]") {
  const auto other = why_not_on("tpu");
  REQUIRE(other);
  CHECK(*other == "the device does not exist, expected cpu or cuda");
  const auto cuda = why_not_on("cuda");
  if (cuda) CHECK(cuda->find('\n') == std::string::npos);
}

TEST_CASE("a CPU build of LibTorch and CUDA opened too late are reported differently",
          "[trainer]") {
  CHECK(internal::open_cuda("libno_such_library.so") ==
        "LibTorch is a CPU build without libno_such_library.so; if nvidia-smi works, "
        "install a CUDA build of torch (scripts/setup.sh does that)");
  // A library that exists but brings no CUDA looks like CUDA opened too late.
  CHECK(internal::open_cuda("libm.so.6") ==
        "LibTorch already ran without CUDA in this process: train on CPUs and GPUs in separate "
        "processes");
}
