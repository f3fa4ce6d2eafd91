#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "trainer/compute/random_stream.h"
#include "trainer/compute/torch.h"

namespace petlab::trainer {

/// The dropout of one training step. Every number is keyed by (seed, purpose, step, layer, example,
/// position), and therefore the same in every layout.
struct Dropout {
  double hidden = 0;     // after embeddings, attention output and feed-forward output
  double attention = 0;  // on attention probabilities
  std::uint64_t step = 0;
  std::vector<std::uint64_t> seeds;  // (K), of the trials in the batch
  /// dropout_round_keys(seeds, …) on the device of the step; undefined on a CPU.
  Tensor round_keys = {};

  /// The dropout of trial k alone, as trial 0.
  Dropout of_trial(std::int64_t k) const;
};

/// The trial, example and position of an activation's row.
struct RowKey {
  std::int64_t trial = 0;
  std::int64_t example = 0;
  std::int64_t position = 0;
};

class DropoutDraws;

/// One dropout of a step: its purpose and layer, and the rows that it acts on.
struct DropoutPlace {
  const Dropout& of;
  double p = 0;
  Purpose purpose = Purpose::embedding_dropout;
  std::int64_t layer = 0;
  std::span<const RowKey> rows;
  /// The same rows on the device of x; nullptr on a CPU.
  DropoutDraws* draws = nullptr;
};

/// Fills in row r's multipliers, each 0 or 1 / (1 - p).
void fill_row(const DropoutPlace& at, std::int64_t r, std::span<float> multipliers);
/// The multipliers of all rows, (rows, width).
Tensor dropout_multipliers(const DropoutPlace& at, std::int64_t width, at::ScalarType dtype);

// Multiply x (rows, width) by the multipliers. On a CPU in float32, these are computed row by row
// and not stored: backward needs one byte per number. Other devices draw them themselves
// (dropout_draws.h). All functions are differentiable.

/// x with dropout.
Tensor drop(const Tensor& x, const DropoutPlace& at);
/// relu(x) with dropout.
Tensor drop_positive(const Tensor& x, const DropoutPlace& at);
/// residual (rows, width) + x with dropout.
Tensor add_dropped(const Tensor& x, const Tensor& residual, const DropoutPlace& at);

}  // namespace petlab::trainer
