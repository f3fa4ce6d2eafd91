#pragma once

#include <compare>
#include <cstdint>
#include <span>
#include <string_view>

#include "sweeps/backbone.h"
#include "sweeps/sweep_file.h"
#include "sweeps/task.h"
#include "sweeps/trial_config.h"

namespace petlab::sweeps {

/// Whose memory is meant.
enum class MemoryDevice { cpu, gpu };

/// When a trial needs most.
enum class MemoryPeak {
  step,        ///< a training step, between its forward and its backward pass
  update,      ///< the optimizer's part of it
  evaluation,  ///< predictions for a batch of validation or test examples
};
std::string_view to_string(MemoryPeak peak);

/// What CUDA's context and the libraries' kernels take of a GPU, which no allocator knows, in MiB:
/// a usual size on the large side, which no GPU has measured here. Too little would let too many
/// trials share a GPU.
inline constexpr std::int64_t kGpuContextMib = 640;

/// What petlab-trainer needs for a trial at its peak, in bytes: estimated from shapes, before
/// anything has run. The parts add up.
struct MemoryEstimate {
  MemoryPeak peak = MemoryPeak::step;
  /// Of the largest batch that is computed at once: batch_size / gradient_accumulation examples,
  /// each as long as data.max_tokens (data.max_target_tokens) lets it be.
  std::int64_t tokens = 0;
  std::int64_t target_tokens = 0;  // 0: the backbone writes no texts
  std::int64_t program = 0;        // LibTorch and the program; on a GPU its context
  std::int64_t weights = 0;        // of the backbone and of what is trained, masks and scores too
  std::int64_t mapped = 0;       // of `weights` what is the checkpoint's file, shared and unwritten
  std::int64_t optimizer = 0;    // gradients, moments, the weights of the best validation
  std::int64_t activations = 0;  // what the forward pass keeps for the backward pass
  std::int64_t workspace = 0;    // what lives for a moment

  std::int64_t total() const { return program + weights + optimizer + activations + workspace; }
  auto operator<=>(const MemoryEstimate&) const = default;
};

/// Bytes in MiB, rounded up.
std::int64_t to_mib(std::int64_t bytes);

/// The formula of docs/internals/numerics.md ("Memory formula"). `tasks` are the declarations of
/// the trial's tasks. It is an upper bound in that every text counts as long as it may be; the
/// tokens of data sets themselves are not in it.
MemoryEstimate estimate_memory(const TrialConfig& config, const BackboneShape& shape,
                               std::span<const TaskDeclaration> tasks, MemoryDevice device);
/// The same of one of the sweep's trials.
MemoryEstimate estimate_memory(const Sweep& sweep, const TrialConfig& config, MemoryDevice device);

}  // namespace petlab::sweeps
