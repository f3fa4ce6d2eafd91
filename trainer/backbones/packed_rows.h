#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "trainer/compute/dropout_draws.h"
#include "trainer/data/packed_sequences.h"

namespace petlab::trainer {

/// Rows of an activation of a packed batch, and whose they are.
struct PackedRows {
  std::vector<RowKey> keys;              // (rows): of their dropout
  std::vector<std::int64_t> trial_rows;  // (K + 1): rows [t[k], t[k + 1]) belong to trial k
  std::shared_ptr<DropoutDraws> draws = nullptr;  // as prepare_dropout made them
  std::int64_t size() const { return static_cast<std::int64_t>(keys.size()); }
};

/// Makes the rows ready for dropout of these places on a device that draws it itself: copies the
/// keys there. Where there is no dropout of them (nullptr, or a rate of 0), or on a CPU, nothing.
void prepare_dropout(PackedRows& rows, const Dropout* dropout, std::vector<DrawnPlaces> places,
                     at::Device device);

/// Rows for so many tokens: a few more than tokens, which fill the batch up. oneDNN compiles a
/// product for each number of rows that it meets, which takes as long as a few products: so there
/// must not be too many of them.
std::int64_t filled_rows(std::int64_t tokens);

/// A row a token, and the filling rows behind them, which count as the last trial's: nothing sees
/// them, and their gradient is 0.
PackedRows token_rows(const PackedSequences& sequences);
/// A row a sequence, for its first token.
PackedRows first_token_rows(const PackedSequences& sequences);

}  // namespace petlab::trainer
