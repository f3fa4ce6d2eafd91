#include "trainer/backbones/packed_rows.h"

#include <utility>

namespace petlab::trainer {
namespace {

/// The example number that keys a filling row's dropout.
constexpr std::int64_t kNoExample = 0xFFFFFFFF;

}  // namespace

void prepare_dropout(PackedRows& rows, const Dropout* dropout, std::vector<DrawnPlaces> places,
                     at::Device device) {
  if (dropout == nullptr || dropout->hidden <= 0 || device.is_cpu()) return;
  rows.draws = std::make_shared<DropoutDraws>(rows.keys, std::move(places), device);
}

std::int64_t filled_rows(std::int64_t tokens) {
  const std::int64_t step = tokens <= 256 ? 8 : tokens <= 512 ? 16 : tokens <= 1024 ? 32 : 64;
  return (tokens + step - 1) / step * step;
}

PackedRows token_rows(const PackedSequences& sequences) {
  PackedRows rows;
  for (std::int64_t k = 0; k < sequences.trials(); ++k) {
    const auto trial = static_cast<std::size_t>(k);
    rows.trial_rows.push_back(rows.size());
    for (std::int64_t s = sequences.trial_sequences[trial];
         s < sequences.trial_sequences[trial + 1]; ++s) {
      const auto i = static_cast<std::size_t>(s);
      const std::int64_t length = sequences.offsets[i + 1] - sequences.offsets[i];
      for (std::int64_t position = 0; position < length; ++position) {
        rows.keys.push_back({k, sequences.examples[i], position});
      }
    }
  }
  const std::int64_t filled = filled_rows(sequences.tokens());
  while (rows.size() < filled) {
    rows.keys.push_back({sequences.trials() - 1, kNoExample, rows.size()});
  }
  rows.trial_rows.push_back(filled);
  return rows;
}

PackedRows first_token_rows(const PackedSequences& sequences) {
  PackedRows rows;
  rows.trial_rows = sequences.trial_sequences;
  for (std::int64_t k = 0; k < sequences.trials(); ++k) {
    const auto trial = static_cast<std::size_t>(k);
    for (std::int64_t s = sequences.trial_sequences[trial];
         s < sequences.trial_sequences[trial + 1]; ++s) {
      rows.keys.push_back({k, sequences.examples[static_cast<std::size_t>(s)], 0});
    }
  }
  return rows;
}

}  // namespace petlab::trainer
