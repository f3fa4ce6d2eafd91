#pragma once

#include <filesystem>
#include <string>

namespace petlab::base {

/// What a machine is, where the kernel tells; what it does not tell is empty.
struct Machine {
  std::string processor;   ///< "AMD EPYC 9V74 80-Core Processor", else the architecture
  std::string kernel;      ///< "Linux 6.1.0-18-amd64"
  std::string gpu_driver;  ///< of NVIDIA: "550.54.15"
};

/// This one. `proc` is /proc, but for tests.
Machine this_machine(const std::filesystem::path& proc = "/proc");

/// "NVIDIA H100 80GB HBM3": the model of the GPU of that UUID; empty where the driver does not
/// tell.
std::string gpu_model(const std::string& uuid, const std::filesystem::path& proc = "/proc");

}  // namespace petlab::base
