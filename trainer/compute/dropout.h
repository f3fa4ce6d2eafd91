#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "trainer/compute/random_stream.h"
#include "trainer/compute/torch.h"

namespace petlab::trainer {

/// The dropout of one training step. Every number is keyed by (seed, purpose, step, layer, example,
/// position) and so the same in every layout.
struct Dropout {
  double hidden = 0;     // after embeddings, attention output and feed-forward output
  double attention = 0;  // on attention probabilities
  std::uint64_t step = 0;
  std::vector<std::uint64_t> seeds;  // (K) of the trials that share the batch
  /// dropout_round_keys(seeds, …) where the step computes, unless that is a CPU.
  Tensor round_keys = {};

  /// That of trial k alone, which is trial 0 there.
  Dropout of_trial(std::int64_t k) const;
};

/// Whose row of an activation it is.
struct RowKey {
  std::int64_t trial = 0;
  std::int64_t example = 0;
  std::int64_t position = 0;
};

class DropoutDraws;

/// A dropout of a step: which of them it is, and whose rows it is on.
struct DropoutPlace {
  const Dropout& of;
  double p = 0;
  Purpose purpose = Purpose::embedding_dropout;
  std::int64_t layer = 0;
  std::span<const RowKey> rows;
  /// The same rows where x lies, unless that is a CPU.
  DropoutDraws* draws = nullptr;
};

/// Row r's multipliers, each 0 or 1 / (1 - p).
void fill_row(const DropoutPlace& at, std::int64_t r, std::span<float> multipliers);
/// Those of all rows, (rows, width).
Tensor dropout_multipliers(const DropoutPlace& at, std::int64_t width, at::ScalarType dtype);

// x (rows, width) times the multipliers. On a CPU in float32 they are made a row at a time and
// never kept: backward needs a byte a number. Another device draws them itself (dropout_draws.h).
// All are differentiable.

/// x with dropout.
Tensor drop(const Tensor& x, const DropoutPlace& at);
/// relu(x) with dropout.
Tensor drop_positive(const Tensor& x, const DropoutPlace& at);
/// residual (rows, width) + x with dropout.
Tensor add_dropped(const Tensor& x, const Tensor& residual, const DropoutPlace& at);

}  // namespace petlab::trainer
