#pragma once

#include <filesystem>
#include <string>

namespace petlab::base {

/// Describes a machine as reported by its kernel. Unknown fields are empty.
struct Machine {
  std::string processor;   ///< "AMD EPYC 9V74 80-Core Processor", or the architecture
  std::string kernel;      ///< "Linux 6.1.0-18-amd64"
  std::string gpu_driver;  ///< NVIDIA's: "550.54.15"
};

/// Describes this machine. Only tests change `proc`.
Machine this_machine(const std::filesystem::path& proc = "/proc");

/// The model of the GPU with that UUID, such as "NVIDIA H100 80GB HBM3"; empty if the driver does
/// not report it.
std::string gpu_model(const std::string& uuid, const std::filesystem::path& proc = "/proc");

}  // namespace petlab::base
