#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "trainer/compute/torch.h"

namespace petlab::trainer {

/// Everything that a trial needs to go on with the same numbers, but for what its configuration
/// and its data already say.
struct TrainingState {
  std::int64_t step = 0;         // optimizer steps done
  std::int64_t evaluations = 0;  // validations done
  std::optional<std::int64_t> best_step;
  std::optional<double> best_value;  // absent: undefined at best_step
  double loss_sum = 0;               // of the steps since the last validation
  double train_seconds = 0;          // spent so far, over all attempts
  bool operator==(const TrainingState&) const = default;
};

using NamedTensors = std::map<std::string, Tensor, std::less<>>;

/// A checkpoint's file: a safetensors file whose metadata holds format, trial and state.
struct TrialCheckpoint {
  std::string trial_id;
  TrainingState state;
  NamedTensors tensors;
};

/// Writes under a temporary name, syncs, renames. Throws Error.
void write_checkpoint(const std::filesystem::path& file, const TrialCheckpoint& checkpoint);

/// Reads it. Throws Error naming the file: damaged, another format version, another trial.
TrialCheckpoint read_checkpoint(const std::filesystem::path& file, const std::string& trial_id);

}  // namespace petlab::trainer
