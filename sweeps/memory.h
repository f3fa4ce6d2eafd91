#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "sweeps/backbone.h"
#include "sweeps/sweep_file.h"
#include "sweeps/task.h"
#include "sweeps/trial_config.h"

namespace petlab::sweeps {

/// The device whose memory is estimated.
enum class MemoryDevice { cpu, gpu };

/// The moment of a trial's largest memory use.
enum class MemoryPeak {
  step,        ///< a training step, between forward and backward pass
  update,      ///< the optimizer's part of a step
  evaluation,  ///< predictions for a batch of validation or test examples
};
std::string_view to_string(MemoryPeak peak);

/// The deepest place in a layer at which a trial's gradient needs the backbone's activations.
enum class GradientReach { head, feed_forward_output, attention_output, attention };
inline constexpr std::size_t kGradientReaches = 4;

/// GPU memory of CUDA's context and the libraries' kernels, which no allocator sees, in MiB. A
/// conservative guess that was not measured on a GPU: too little would let too many trials share a
/// GPU.
inline constexpr std::int64_t kGpuContextMib = 640;

/// The peak memory of petlab-trainer for a trial in bytes, estimated from shapes before the trial
/// runs. The parts add up.
struct MemoryEstimate {
  MemoryPeak peak = MemoryPeak::step;
  /// Tokens of the largest batch computed at once: batch_size / gradient_accumulation examples,
  /// each of the maximum length, data.max_tokens (data.max_target_tokens).
  std::int64_t tokens = 0;
  std::int64_t target_tokens = 0;  // 0: the backbone generates no texts
  std::int64_t program = 0;        // LibTorch and the program; on a GPU the context
  std::int64_t weights = 0;        // backbone and trained parts, including masks and scores
  std::int64_t mapped = 0;  // part of `weights` that is the checkpoint's file, shared and read-only
  std::int64_t optimizer = 0;    // gradients, moments, weights of the best validation
  std::int64_t activations = 0;  // kept by the forward pass for the backward pass
  std::int64_t workspace = 0;    // temporary data

  std::int64_t backbone = 0;  // part of `weights`
  /// Activations and workspace at each moment, of which those above are the largest.
  std::int64_t at_step = 0;
  std::int64_t at_update = 0;
  std::int64_t at_evaluation = 0;
  /// How deep the trial's gradient reaches, and at_step in a gang with a trial of each reach: a
  /// pass keeps for all of its rows what one of its trials needs.
  GradientReach reach = GradientReach::head;
  std::array<std::int64_t, kGradientReaches> at_step_beside = {};

  std::int64_t total() const { return program + weights + optimizer + activations + workspace; }
  auto operator<=>(const MemoryEstimate&) const = default;
};

/// The peak memory in bytes of trials that are trained together on one backbone. In a step, each
/// keeps what the trial with the deepest gradient needs; updates and evaluations are one after
/// another.
std::int64_t gang_memory(std::span<const MemoryEstimate> trials);

/// Adds a margin to a measured or estimated peak: another seed draws other batches, and GPU
/// contexts differ a little.
constexpr std::int64_t with_margin(std::int64_t peak_mib) { return peak_mib + peak_mib / 10 + 64; }

/// Converts bytes to MiB, rounded up.
std::int64_t to_mib(std::int64_t bytes);

/// The formula of docs/internals/numerics.md ("Memory formula"). `tasks` are the declarations of
/// the trial's tasks. It is an upper bound: every text counts with its maximum length. The tokens
/// of the data sets are not included.
MemoryEstimate estimate_memory(const TrialConfig& config, const BackboneShape& shape,
                               std::span<const TaskDeclaration> tasks, MemoryDevice device);
/// The same for a trial of the sweep.
MemoryEstimate estimate_memory(const Sweep& sweep, const TrialConfig& config, MemoryDevice device);

}  // namespace petlab::sweeps
