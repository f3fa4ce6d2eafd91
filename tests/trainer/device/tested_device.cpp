#include "tests/trainer/device/tested_device.h"

#include <cstdlib>
#include <stdexcept>
#include <string>

#include "tests/trainer/device/emulated_kernels.h"
#include "trainer/compute/devices.h"
#include "trainer/compute/random_stream.h"

namespace petlab::testing {
namespace {

bool is_named(const std::string& device) {
  const char* const named = std::getenv("PETLAB_TEST_DEVICE");
  return named != nullptr && named == device;
}

}  // namespace

at::Device tested_device() {
  if (!is_named("cuda")) {
    if (emulates_kernels()) {
      trainer::internal::set_device_kernels(pretend_device().type(), &emulated_kernels());
    }
    return pretend_device();
  }
  if (const auto missing = trainer::why_not_on("cuda")) throw std::runtime_error(*missing);
  return trainer::placement_on("cuda").device;
}

bool counts_what_is_tested() { return !is_named("cuda"); }
bool emulates_kernels() { return is_named("kernels"); }

at::Tensor normal_rows(std::int64_t rows, std::int64_t width, std::uint64_t number) {
  at::Tensor numbers = at::empty({rows, width}, at::kFloat);
  trainer::fill_normal(
      7, number, 1.0,
      {numbers.mutable_data_ptr<float>(), static_cast<std::size_t>(numbers.numel())});
  return numbers;
}

}  // namespace petlab::testing
