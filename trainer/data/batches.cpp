#include "trainer/data/batches.h"

#include "sweeps/text_to_text.h"

namespace petlab::trainer {

namespace {

TokenisedSplit empty_split(const Split& split) {
  TokenisedSplit result;
  result.kind = split.kind;
  result.offsets.reserve(split.examples.size() + 1);
  result.offsets.push_back(0);
  return result;
}

void append_source(const Encoding& encoding, TokenisedSplit& result) {
  result.ids.insert(result.ids.end(), encoding.ids.begin(), encoding.ids.end());
  result.type_ids.insert(result.type_ids.end(), encoding.type_ids.begin(), encoding.type_ids.end());
  result.offsets.push_back(static_cast<std::int64_t>(result.ids.size()));
}

void append_wanted(const Example& example, TokenisedSplit& result) {
  switch (result.kind) {
    case sweeps::TaskKind::classification:
      result.classes.push_back(example.label);
      break;
    case sweeps::TaskKind::regression:
      result.scores.push_back(example.score);
      break;
    case sweeps::TaskKind::text:
      result.references.push_back(example.target);
      break;
  }
}

/// The target text of an example for a text-to-text model.
std::string target_of(const Example& example, const sweeps::TaskDeclaration& task) {
  switch (task.kind) {
    case sweeps::TaskKind::classification:
      return sweeps::target_text(task, example.label);
    case sweeps::TaskKind::regression:
      return sweeps::score_target_text(example.score);
    case sweeps::TaskKind::text:
      break;
  }
  return example.target;
}

/// Appends an example's tokens, which are at `offsets` in `ids`.
void append_tokens(const std::vector<std::int32_t>& ids, const std::vector<std::int64_t>& offsets,
                   std::int64_t example, PackedSequences& packed) {
  const auto index = static_cast<std::size_t>(example);
  packed.ids.insert(packed.ids.end(), ids.begin() + offsets[index],
                    ids.begin() + offsets[index + 1]);
  packed.offsets.push_back(static_cast<std::int64_t>(packed.ids.size()));
  packed.examples.push_back(example);
}

}  // namespace

TokenisedSplit tokenise(const Split& split, const Tokenizer& tokenizer, std::int64_t max_tokens) {
  TokenisedSplit result = empty_split(split);
  for (const Example& example : split.examples) {
    const auto pair = example.pair ? std::optional<std::string_view>(*example.pair) : std::nullopt;
    append_source(tokenizer.encode(example.text, pair, max_tokens), result);
    append_wanted(example, result);
  }
  return result;
}

TokenisedSplit tokenise_texts(const Split& split, const sweeps::TaskDeclaration& task,
                              const Tokenizer& tokenizer, const TokenLimits& limits) {
  TokenisedSplit result = empty_split(split);
  result.target_offsets.reserve(split.examples.size() + 1);
  result.target_offsets.push_back(0);
  for (const Example& example : split.examples) {
    std::vector<std::string> texts{example.text};
    if (example.pair) texts.push_back(*example.pair);
    append_source(tokenizer.encode(sweeps::source_text(task, texts), std::nullopt, limits.source),
                  result);
    append_wanted(example, result);
    const Encoding target = tokenizer.encode(target_of(example, task), std::nullopt, limits.target);
    result.target_ids.insert(result.target_ids.end(), target.ids.begin(), target.ids.end());
    result.target_offsets.push_back(static_cast<std::int64_t>(result.target_ids.size()));
  }
  return result;
}

PackedBatch pack(const TokenisedSplit& split, std::span<const std::int64_t> examples) {
  PackedBatch batch;
  batch.kind = split.kind;
  PackedSequences& packed = batch.input.sequences;
  for (const std::int64_t example : examples) {
    const auto index = static_cast<std::size_t>(example);
    append_tokens(split.ids, split.offsets, example, packed);
    batch.input.type_ids.insert(batch.input.type_ids.end(),
                                split.type_ids.begin() + split.offsets[index],
                                split.type_ids.begin() + split.offsets[index + 1]);
    if (!split.target_offsets.empty()) {
      append_tokens(split.target_ids, split.target_offsets, example, batch.targets);
    }
    if (split.kind == sweeps::TaskKind::regression) {
      batch.scores.push_back(split.scores[index]);
    } else if (split.kind == sweeps::TaskKind::classification) {
      batch.classes.push_back(split.classes[index]);
    }
  }
  packed.trial_sequences.back() = packed.sequences();
  batch.targets.trial_sequences.back() = batch.targets.sequences();
  return batch;
}

PackedBatch joined(std::span<const PackedBatch> batches) {
  PackedBatch all;
  all.input.sequences.trial_sequences = {0};
  all.targets.trial_sequences = {0};
  const auto append = [](const auto& from, auto& to) {
    to.insert(to.end(), from.begin(), from.end());
  };
  const auto append_sequences = [&](const PackedSequences& from, PackedSequences& to) {
    const std::int64_t before = to.tokens();
    append(from.ids, to.ids);
    append(from.examples, to.examples);
    for (std::size_t s = 1; s < from.offsets.size(); ++s) {
      to.offsets.push_back(before + from.offsets[s]);
    }
    to.trial_sequences.push_back(to.sequences());
  };
  for (const PackedBatch& batch : batches) {
    append_sequences(batch.input.sequences, all.input.sequences);
    append(batch.input.type_ids, all.input.type_ids);
    append_sequences(batch.targets, all.targets);
  }
  return all;
}

std::vector<std::int64_t> counted_positions(const PackedSequences& sequences,
                                            std::int64_t first_position) {
  std::vector<std::int64_t> positions;
  positions.reserve(sequences.ids.size());
  for (std::size_t s = 0; s + 1 < sequences.offsets.size(); ++s) {
    std::int64_t position = first_position;
    for (std::int64_t token = sequences.offsets[s]; token < sequences.offsets[s + 1]; ++token) {
      // RoBERTa: a pad token in a text has the padding's position, and does not advance the count.
      const bool is_pad = sequences.ids[static_cast<std::size_t>(token)] == first_position - 1;
      positions.push_back(is_pad ? first_position - 1 : position++);
    }
  }
  return positions;
}

std::vector<std::int64_t> roberta_positions(std::span<const std::int64_t> ids, std::int64_t pad) {
  std::vector<std::int64_t> positions;
  positions.reserve(ids.size());
  std::int64_t real = 0;
  for (const std::int64_t id : ids) positions.push_back(id == pad ? pad : pad + ++real);
  return positions;
}

}  // namespace petlab::trainer
