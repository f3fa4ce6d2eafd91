#pragma once

#include <chrono>
#include <cstdint>
#include <ctime>
#include <fstream>
#include <string>

namespace petlab::bench {

/// Wall and processor time of this process since the stopwatch was created.
class Stopwatch {
 public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count();
  }
  double processor_seconds() const {
    return static_cast<double>(std::clock() - began_processor_) / CLOCKS_PER_SEC;
  }

 private:
  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  std::clock_t began_processor_ = std::clock();
};

/// A field of /proc/self/FILE in KiB, or 0 on systems without it.
inline std::int64_t process_kib(const char* file, const std::string& field) {
  std::ifstream stream(std::string("/proc/self/") + file);
  for (std::string line; std::getline(stream, line);) {
    if (line.starts_with(field)) return std::stoll(line.substr(field.size()));
  }
  return 0;
}

}  // namespace petlab::bench
