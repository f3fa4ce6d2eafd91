#pragma once

#include <optional>
#include <string>
#include <vector>

#include "orchestrator/host/gpus.h"

namespace petlab::orchestrator {

/// A program that lists the GPUs of one kind. To support another one, add a row to gpu_tools().
struct GpuTool {
  using Answers = std::vector<std::string>;  // the output for each question

  std::string program;
  std::string kind;  // GpuKind::name
  /// Returns the arguments of the next question, or std::nullopt after the last one. `slices`: GPUs
  /// may be divided.
  std::optional<std::vector<std::string>> (*question)(const Answers& answers, bool slices);
  /// Parses the GPUs in the answers so far. Unreadable lines go to GpuList::notes.
  GpuList (*read)(const Answers& answers);
};

/// All supported tools. For each kind of GPU, petlab uses the first tool that is on PATH.
const std::vector<GpuTool>& gpu_tools();

// The functions in the rows of gpu_tools().
std::optional<std::vector<std::string>> nvidia_smi_question(const GpuTool::Answers& answers,
                                                            bool slices);
GpuList read_nvidia_smi(const GpuTool::Answers& answers);
std::optional<std::vector<std::string>> rocm_smi_question(const GpuTool::Answers& answers, bool);
GpuList read_rocm_smi(const GpuTool::Answers& answers);
std::optional<std::vector<std::string>> amd_smi_question(const GpuTool::Answers& answers, bool);
GpuList read_amd_smi(const GpuTool::Answers& answers);

}  // namespace petlab::orchestrator
