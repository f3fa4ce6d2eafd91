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
};

/// Whose row of an activation it is.
struct RowKey {
  std::int64_t trial = 0;
  std::int64_t example = 0;
  std::int64_t position = 0;
};

/// Multipliers of dropout, (rows.size(), width), each 0 or 1 / (1 - p).
Tensor dropout_multipliers(const Dropout& dropout, double p, Purpose purpose, std::int64_t layer,
                           std::span<const RowKey> rows, std::int64_t width, at::ScalarType dtype);

}  // namespace petlab::trainer
