#pragma once

#include <optional>
#include <string>
#include <vector>

#include "orchestrator/host/gpus.h"

namespace petlab::orchestrator {

/// A program that lists the GPUs of one kind. To support another one, add a row to gpu_tools().
struct GpuTool {
  using Answers = std::vector<std::string>;  // what it printed, question by question

  std::string program;
  std::string kind;  // GpuKind::name
  /// The arguments of the next question; absent: all is asked. `slices`: GPUs may be divided.
  std::optional<std::vector<std::string>> (*question)(const Answers& answers, bool slices);
  /// The GPUs in the answers so far. Reads what it can, and notes what it cannot.
  GpuList (*read)(const Answers& answers);
};

/// The first one of a kind that is on PATH is asked.
const std::vector<GpuTool>& gpu_tools();

// The rows' functions.
std::optional<std::vector<std::string>> nvidia_smi_question(const GpuTool::Answers& answers,
                                                            bool slices);
GpuList read_nvidia_smi(const GpuTool::Answers& answers);
std::optional<std::vector<std::string>> rocm_smi_question(const GpuTool::Answers& answers, bool);
GpuList read_rocm_smi(const GpuTool::Answers& answers);
std::optional<std::vector<std::string>> amd_smi_question(const GpuTool::Answers& answers, bool);
GpuList read_amd_smi(const GpuTool::Answers& answers);

}  // namespace petlab::orchestrator
