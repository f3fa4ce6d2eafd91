#include "trainer/compute/device_memory.h"

#include <torch/version.h>

#include "sweeps/memory.h"

#if TORCH_VERSION_MAJOR > 2 || TORCH_VERSION_MINOR >= 9
#define PETLAB_HAS_DEVICE_ALLOCATOR
#include <c10/core/CachingDeviceAllocator.h>
#endif

namespace petlab::trainer {
namespace {

constexpr double kMib = 1024.0 * 1024.0;

}  // namespace

void begin_device_memory([[maybe_unused]] at::Device device) {
#ifdef PETLAB_HAS_DEVICE_ALLOCATOR
  if (device.is_cpu()) return;
  // An allocator may not know its devices before its first allocation.
  at::empty({1}, at::TensorOptions().device(device));
  c10::DeviceAllocator* const allocator = c10::getDeviceAllocator(device.type());
  allocator->emptyCache();
  allocator->resetPeakStats(device.index());
#endif
}

std::optional<double> peak_device_memory_mib([[maybe_unused]] at::Device device) {
#ifdef PETLAB_HAS_DEVICE_ALLOCATOR
  if (device.is_cpu()) return std::nullopt;
  const auto stats = c10::getDeviceAllocator(device.type())->getDeviceStats(device.index());
  constexpr auto kAll = static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE);
  const double held = static_cast<double>(stats.reserved_bytes[kAll].peak) / kMib;
  return device.is_cuda() ? held + static_cast<double>(sweeps::kGpuContextMib) : held;
#else
  return std::nullopt;
#endif
}

}  // namespace petlab::trainer
