#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "trainer/compute/torch.h"

namespace petlab::trainer {

/// The state that a trial needs, besides its configuration and data, to resume with the same
/// numbers.
struct TrainingState {
  std::int64_t step = 0;         // optimizer steps done
  std::int64_t evaluations = 0;  // validations done
  std::optional<std::int64_t> best_step;
  std::optional<double> best_value;  // absent if undefined at best_step
  double loss_sum = 0;               // over the steps since the last validation
  double train_seconds = 0;          // over all attempts
  bool operator==(const TrainingState&) const = default;
};

using NamedTensors = std::map<std::string, Tensor, std::less<>>;

/// The content of a checkpoint: a safetensors file with format, trial and state in its metadata.
struct TrialCheckpoint {
  std::string trial_id;
  TrainingState state;
  NamedTensors tensors;
};

/// Writes to a temporary file, syncs and renames it. Throws Error.
void write_checkpoint(const std::filesystem::path& file, const TrialCheckpoint& checkpoint);

/// Reads a checkpoint. Throws Error, naming the file, if it is damaged, of another format version
/// or of another trial.
TrialCheckpoint read_checkpoint(const std::filesystem::path& file, const std::string& trial_id);

}  // namespace petlab::trainer
