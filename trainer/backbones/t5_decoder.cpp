#include "trainer/backbones/t5_decoder.h"

#include <numeric>
#include <utility>

#include "trainer/compute/tensors.h"

namespace petlab::trainer {

T5Decoder::T5Decoder(const T5& model, PackedSequences sources, const Tensor& encoded,
                     const Hooks& hooks)
    : model_(model),
      hooks_(hooks),
      sources_(std::move(sources)),
      row_offsets_(sources_.offsets.size()) {
  std::iota(row_offsets_.begin(), row_offsets_.end(), 0);
  const PackedRows rows = token_rows(sources_);
  const Tensor states = at::constant_pad_nd(encoded, {0, 0, 0, rows.size() - encoded.size(0)});
  const Pass pass{hooks_, nullptr};
  for (std::size_t l = 0; l < model_.decoder_.layers.size(); ++l) {
    const AttentionBlock& cross = *model_.decoder_.layers[l].cross;
    Memory memory;
    memory.source_keys = cross.key(states);
    memory.source_values = pass.changed_projection(Site::cross_value, static_cast<std::int64_t>(l),
                                                   states, cross.value(states), rows);
    const Tensor none =
        at::empty({sources_.sequences(), 0, model_.config().inner()}, encoded.options());
    memory.keys = none;
    memory.values = none;
    memory_.push_back(std::move(memory));
  }
}

Tensor T5Decoder::bias_of_last() const {
  // The query stands at position tokens_, and is the first of its rows' queries.
  std::vector<std::int64_t> buckets;
  const T5Config& config = model_.config();
  for (std::int64_t distance = -2 * tokens_; distance <= 0; ++distance) {
    buckets.push_back(relative_bucket(distance, false, config.num_buckets, config.max_distance));
  }
  const Tensor rows = on_device(at::tensor(buckets, at::kLong), model_.placement().device);
  return at::embedding(model_.decoder_.position_table, rows).t().contiguous();
}

Tensor T5Decoder::attend_own(std::size_t layer, const Tensor& asked, const PackedRows& rows,
                             const Tensor& bias) {
  const AttentionBlock& block = model_.decoder_.layers[layer].attention;
  const std::int64_t number = model_.decoder_.first_layer + static_cast<std::int64_t>(layer);
  const Pass pass{hooks_, nullptr};
  const Tensor query =
      pass.changed_projection(Site::query, number, asked, block.query(asked), rows);
  const Tensor value =
      pass.changed_projection(Site::value, number, asked, block.value(asked), rows);
  Memory& memory = memory_[layer];
  memory.keys = at::cat({memory.keys, block.key(asked).unsqueeze(1)}, 1);
  memory.values = at::cat({memory.values, value.unsqueeze(1)}, 1);
  PackedSequences own;
  std::vector<std::int64_t> queries;
  for (std::int64_t r = 0; r < rows.size(); ++r) {
    own.offsets.push_back((r + 1) * (tokens_ + 1));
    own.examples.push_back(r);
  }
  queries.resize(own.offsets.size());
  std::iota(queries.begin(), queries.end(), 0);
  own.trial_sequences = {0, rows.size()};
  AttentionShape shape{own, queries, model_.config().num_heads, number};
  shape.scaled = false;
  shape.position_bias = bias;
  std::optional<Prefix> prefix;
  if (hooks_.acts_on(Site::keys_and_values)) {
    prefix = hooks_.prefix({Site::keys_and_values, number, rows.trial_rows});
  }
  const std::int64_t inner = model_.config().inner();
  return block.output(attention(query, memory.keys.view({-1, inner}),
                                memory.values.view({-1, inner}), prefix, shape, nullptr));
}

Tensor T5Decoder::attend_sources(std::size_t layer, const Tensor& asked,
                                 const PackedRows& rows) const {
  const AttentionBlock& block = *model_.decoder_.layers[layer].cross;
  const auto number = static_cast<std::int64_t>(layer);
  const Pass pass{hooks_, nullptr};
  const Tensor query =
      pass.changed_projection(Site::cross_query, number, asked, block.query(asked), rows);
  AttentionShape shape{sources_, row_offsets_, model_.config().num_heads, number};
  shape.scaled = false;
  std::optional<Prefix> prefix;
  if (hooks_.acts_on(Site::cross_keys_and_values)) {
    prefix = hooks_.prefix({Site::cross_keys_and_values, number, rows.trial_rows});
  }
  return block.output(attention(query, memory_[layer].source_keys, memory_[layer].source_values,
                                prefix, shape, nullptr));
}

Tensor T5Decoder::step(const std::vector<std::int64_t>& ids) {
  PackedRows rows;
  const auto n = static_cast<std::int64_t>(ids.size());
  for (std::int64_t r = 0; r < n; ++r) rows.keys.push_back({0, r, tokens_});
  rows.trial_rows = {0, n};
  const Pass pass{hooks_, nullptr};
  Tensor x = at::embedding(model_.weights().find("shared.weight")->second,
                           on_device(at::tensor(ids, at::kLong), model_.placement().device));
  const Tensor bias = bias_of_last();
  const T5::Stack& stack = model_.decoder_;
  for (std::size_t l = 0; l < stack.layers.size(); ++l) {
    const T5::Layer& layer = stack.layers[l];
    const auto cross = static_cast<std::int64_t>(l);
    const std::int64_t number = stack.first_layer + cross;
    x = close_sub_layer(
        pass, {Site::attention_output, number, Purpose::attention_output_dropout, nullptr},
        attend_own(l, layer.attention_norm(x), rows, bias), x, rows);
    x = close_sub_layer(
        pass,
        {Site::cross_attention_output, cross, Purpose::cross_attention_output_dropout, nullptr},
        attend_sources(l, layer.cross_norm(x), rows), x, rows);
    x = close_sub_layer(
        pass, {Site::feed_forward_output, number, Purpose::feed_forward_output_dropout, nullptr},
        layer.feed_forward(pass, number, layer.feed_forward_norm(x), rows), x, rows);
  }
  ++tokens_;
  return model_.logits(stack.final_norm(x));
}

void T5Decoder::keep(const std::vector<std::vector<std::int64_t>>& rows) {
  std::vector<std::int64_t> kept_rows, kept_tokens;
  PackedSequences sources;
  row_offsets_ = {0};
  bool all_stay = true;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].empty()) {
      all_stay = false;
      continue;
    }
    kept_rows.insert(kept_rows.end(), rows[i].begin(), rows[i].end());
    row_offsets_.push_back(static_cast<std::int64_t>(kept_rows.size()));
    for (std::int64_t t = sources_.offsets[i]; t < sources_.offsets[i + 1]; ++t) {
      kept_tokens.push_back(t);
    }
    sources.offsets.push_back(static_cast<std::int64_t>(kept_tokens.size()));
    sources.examples.push_back(sources_.examples[i]);
  }
  const auto device = model_.placement().device;
  const Tensor from = on_device(at::tensor(kept_rows, at::kLong), device);
  const Tensor tokens = on_device(at::tensor(kept_tokens, at::kLong), device);
  for (Memory& memory : memory_) {
    memory.keys = memory.keys.index_select(0, from);
    memory.values = memory.values.index_select(0, from);
    if (all_stay) continue;
    memory.source_keys = memory.source_keys.index_select(0, tokens);
    memory.source_values = memory.source_values.index_select(0, tokens);
  }
  if (all_stay) return;
  sources.trial_sequences = {0, sources.sequences()};
  sources_ = std::move(sources);
}

}  // namespace petlab::trainer
