#include "trainer/data/batches.h"

#include <algorithm>

namespace petlab::trainer {

TokenisedSplit tokenise(const Split& split, const Tokenizer& tokenizer, std::int64_t max_tokens) {
  TokenisedSplit result;
  result.offsets.reserve(split.examples.size() + 1);
  result.offsets.push_back(0);
  for (const Example& example : split.examples) {
    const auto pair = example.pair ? std::optional<std::string_view>(*example.pair) : std::nullopt;
    const Encoding encoding = tokenizer.encode(example.text, pair, max_tokens);
    result.ids.insert(result.ids.end(), encoding.ids.begin(), encoding.ids.end());
    result.type_ids.insert(result.type_ids.end(), encoding.type_ids.begin(),
                           encoding.type_ids.end());
    result.offsets.push_back(static_cast<std::int64_t>(result.ids.size()));
    if (split.regression) {
      result.scores.push_back(example.score);
    } else {
      result.classes.push_back(example.label);
    }
  }
  return result;
}

PackedBatch pack(const TokenisedSplit& split, std::span<const std::int64_t> examples,
                 std::int64_t first_position) {
  PackedBatch batch;
  std::size_t tokens = 0;
  for (const std::int64_t example : examples) {
    tokens += static_cast<std::size_t>(split.tokens(example));
  }
  batch.ids.reserve(tokens);
  batch.type_ids.reserve(tokens);
  batch.position_ids.reserve(tokens);
  batch.offsets.reserve(examples.size() + 1);
  batch.offsets.push_back(0);
  batch.examples.assign(examples.begin(), examples.end());
  for (const std::int64_t example : examples) {
    const auto index = static_cast<std::size_t>(example);
    const auto begin = static_cast<std::size_t>(split.offsets[index]);
    const auto end = static_cast<std::size_t>(split.offsets[index + 1]);
    std::int64_t position = first_position;
    for (std::size_t token = begin; token < end; ++token) {
      batch.ids.push_back(split.ids[token]);
      batch.type_ids.push_back(split.type_ids[token]);
      // RoBERTa: a pad token written in the text has the padding's position and does not count.
      const bool is_pad = split.ids[token] == first_position - 1;
      batch.position_ids.push_back(is_pad ? first_position - 1 : position++);
    }
    batch.offsets.push_back(static_cast<std::int64_t>(batch.ids.size()));
    batch.max_length = std::max(batch.max_length, static_cast<std::int64_t>(end - begin));
    if (split.classes.empty()) {
      batch.scores.push_back(split.scores[index]);
    } else {
      batch.classes.push_back(split.classes[index]);
    }
  }
  return batch;
}

std::vector<std::int64_t> roberta_positions(std::span<const std::int64_t> ids, std::int64_t pad) {
  std::vector<std::int64_t> positions;
  positions.reserve(ids.size());
  std::int64_t real = 0;
  for (const std::int64_t id : ids) positions.push_back(id == pad ? pad : pad + ++real);
  return positions;
}

}  // namespace petlab::trainer
