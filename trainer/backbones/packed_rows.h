#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "trainer/compute/dropout_draws.h"
#include "trainer/data/packed_sequences.h"

namespace petlab::trainer {

/// The rows of an activation of a packed batch, with their trials and dropout keys.
struct PackedRows {
  std::vector<RowKey> keys;              // (rows), for their dropout
  std::vector<std::int64_t> trial_rows;  // (K + 1): rows [t[k], t[k + 1]) belong to trial k
  std::shared_ptr<DropoutDraws> draws = nullptr;  // set by prepare_dropout
  std::int64_t size() const { return static_cast<std::int64_t>(keys.size()); }
};

/// Prepares dropout of the rows at these places on a device that draws it itself: copies the keys
/// there. Does nothing on a CPU or without dropout (nullptr, or a rate of 0).
void prepare_dropout(PackedRows& rows, const Dropout* dropout, std::vector<DrawnPlaces> places,
                     at::Device device);

/// Rounds the number of rows up from `tokens`, so that few different numbers occur: oneDNN compiles
/// a product for each new number of rows, which takes as long as several products.
std::int64_t filled_rows(std::int64_t tokens);

/// A row for each token, then the filling rows, which count as the last trial's. No other row sees
/// them, and their gradient is 0.
PackedRows token_rows(const PackedSequences& sequences);
/// A row for the first token of each sequence.
PackedRows first_token_rows(const PackedSequences& sequences);

}  // namespace petlab::trainer
