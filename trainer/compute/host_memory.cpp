#include "trainer/compute/host_memory.h"

#include <cstddef>
#include <fstream>
#include <string>

// jemalloc's, in programs that are linked with it (trainer/heap.cpp).
extern "C" [[gnu::weak]] int mallctl(const char* name, void* old_value, std::size_t* old_size,
                                     void* new_value, std::size_t new_size);

namespace petlab::trainer {

void begin_host_memory() {
  // Arena 4096 stands for all arenas.
  if (mallctl != nullptr) mallctl("arena.4096.purge", nullptr, nullptr, nullptr, 0);
  // Resets the kernel's record of the peak.
  std::ofstream("/proc/self/clear_refs") << "5";
}

std::optional<double> peak_host_memory_mib() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return std::stod(line.substr(6)) / 1024;
  }
  return std::nullopt;
}

}  // namespace petlab::trainer
