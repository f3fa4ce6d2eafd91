#include "base/machine.h"

#include <sys/utsname.h>

#include <algorithm>
#include <fstream>
#include <string_view>
#include <system_error>

#include "base/trimmed.h"

namespace petlab::base {
namespace {

// The value after `name:` in the first line with that name.
std::string line_of(const std::filesystem::path& file, std::string_view name) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    const std::size_t colon = line.find(':');
    const std::string_view text = line;
    if (colon == std::string::npos || trimmed(text.substr(0, colon)) != name) continue;
    return std::string(trimmed(text.substr(colon + 1)));
  }
  return {};
}

// Finds the first dotted number: "550.54.15" in "NVRM version: NVIDIA UNIX x86_64 Kernel Module
// 550.54.15  Tue Mar …".
std::string version_in(const std::string& text) {
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(' ', begin), text.size());
    const std::string word = text.substr(begin, end - begin);
    if (word.find('.') != std::string::npos &&
        word.find_first_not_of("0123456789.") == std::string::npos) {
      return word;
    }
    begin = end + 1;
  }
  return {};
}

}  // namespace

Machine this_machine(const std::filesystem::path& proc) {
  Machine machine;
  machine.processor = line_of(proc / "cpuinfo", "model name");
  utsname names{};
  if (::uname(&names) == 0) {
    machine.kernel = std::string(names.sysname) + " " + names.release;
    if (machine.processor.empty()) machine.processor = names.machine;
  }
  machine.gpu_driver = version_in(line_of(proc / "driver/nvidia/version", "NVRM version"));
  return machine;
}

std::string gpu_model(const std::string& uuid, const std::filesystem::path& proc) {
  std::error_code error;
  for (std::filesystem::directory_iterator gpu(proc / "driver/nvidia/gpus", error), end;
       !error && gpu != end; gpu.increment(error)) {
    if (line_of(gpu->path() / "information", "GPU UUID") == uuid) {
      return line_of(gpu->path() / "information", "Model");
    }
  }
  return {};
}

}  // namespace petlab::base
