#include "trainer/backbones/t5_decoder.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "trainer/compute/tensors.h"

namespace petlab::trainer {
namespace {

/// The number of tokens per row that the initial memory can hold.
constexpr std::int64_t kFirstTokens = 16;

}  // namespace

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
    const Tensor none = at::empty({0, model_.config().inner()}, encoded.options());
    memory.keys = none;
    memory.values = none;
    memory_.push_back(std::move(memory));
  }
}

Tensor T5Decoder::bias_of_last() const {
  // The query is at position tokens_, but attention numbers it 0, as the only query of its row.
  std::vector<std::int64_t> buckets;
  const T5Config& config = model_.config();
  for (std::int64_t distance = -2 * tokens_; distance <= 0; ++distance) {
    buckets.push_back(relative_bucket(distance, false, config.num_buckets, config.max_distance));
  }
  const Tensor rows = on_device(at::tensor(buckets, at::kLong), model_.placement().device);
  return at::embedding(model_.decoder_.position_table, rows).t().contiguous();
}

void T5Decoder::make_room(std::int64_t places) {
  if (places_used_ + places <= memory_.front().keys.size(0)) return;
  std::vector<std::int64_t> kept = places_;
  std::sort(kept.begin(), kept.end());
  kept.erase(std::unique(kept.begin(), kept.end()), kept.end());
  for (std::int64_t& place : places_) {
    place = std::lower_bound(kept.begin(), kept.end(), place) - kept.begin();
  }
  places_used_ = static_cast<std::int64_t>(kept.size());
  const Tensor from = on_device(at::tensor(kept, at::kLong), model_.placement().device);
  const auto moved = [&](const Tensor& old) {
    // Doubles the memory, so that moves stay rare.
    Tensor copy = at::empty({2 * places_used_ + kFirstTokens * places, old.size(1)}, old.options());
    Tensor begin = copy.narrow(0, 0, places_used_);
    at::index_select_out(begin, old, 0, from);
    return copy;
  };
  for (Memory& memory : memory_) {
    memory.keys = moved(memory.keys);
    memory.values = moved(memory.values);
  }
}

T5Decoder::RowTokens T5Decoder::add_tokens(std::int64_t rows) {
  make_room(rows);
  std::vector<std::int64_t> places;
  places.reserve(static_cast<std::size_t>(rows * (tokens_ + 1)));
  RowTokens row_tokens;
  for (std::int64_t r = 0; r < rows; ++r) {
    const auto begin = places_.begin() + r * tokens_;
    places.insert(places.end(), begin, begin + tokens_);
    places.push_back(places_used_ + r);
    row_tokens.sequences.offsets.push_back((r + 1) * (tokens_ + 1));
    row_tokens.sequences.examples.push_back(r);
  }
  places_ = std::move(places);
  places_used_ += rows;
  row_tokens.query_offsets.resize(row_tokens.sequences.offsets.size());
  std::iota(row_tokens.query_offsets.begin(), row_tokens.query_offsets.end(), 0);
  row_tokens.sequences.trial_sequences = {0, rows};
  row_tokens.bias = bias_of_last();
  const at::Device device = model_.placement().device;
  if (!device.is_cpu()) {
    AttentionShape shape{row_tokens.sequences, row_tokens.query_offsets, model_.config().num_heads};
    shape.position_bias = row_tokens.bias;
    shape.key_rows = places_;
    row_tokens.buckets = attention_buckets(shape, rows, 1, device);
    if (!source_buckets_) {
      source_buckets_ = attention_buckets({sources_, row_offsets_}, rows, 1, device);
    }
  }
  return row_tokens;
}

Tensor T5Decoder::attend_tokens(std::size_t layer, const Tensor& normed, const PackedRows& rows,
                                const RowTokens& row_tokens) {
  const AttentionBlock& block = model_.decoder_.layers[layer].attention;
  const std::int64_t number = model_.decoder_.first_layer + static_cast<std::int64_t>(layer);
  const Pass pass{hooks_, nullptr};
  const Tensor query =
      pass.changed_projection(Site::query, number, normed, block.query(normed), rows);
  const Tensor value =
      pass.changed_projection(Site::value, number, normed, block.value(normed), rows);
  Memory& memory = memory_[layer];
  const std::int64_t newest = places_used_ - rows.size();
  memory.keys.narrow(0, newest, rows.size()).copy_(block.key(normed));
  memory.values.narrow(0, newest, rows.size()).copy_(value);
  AttentionShape shape{row_tokens.sequences, row_tokens.query_offsets, model_.config().num_heads,
                       number};
  shape.scaled = false;
  shape.position_bias = row_tokens.bias;
  shape.key_rows = places_;
  if (row_tokens.buckets) shape.buckets = &*row_tokens.buckets;
  std::optional<Prefix> prefix;
  if (hooks_.acts_on(Site::keys_and_values)) {
    prefix = hooks_.prefix({Site::keys_and_values, number, rows.trial_rows});
  }
  return block.output(attention(query, memory.keys, memory.values, prefix, shape, nullptr));
}

Tensor T5Decoder::attend_sources(std::size_t layer, const Tensor& normed,
                                 const PackedRows& rows) const {
  const AttentionBlock& block = *model_.decoder_.layers[layer].cross;
  const auto number = static_cast<std::int64_t>(layer);
  const Pass pass{hooks_, nullptr};
  const Tensor query =
      pass.changed_projection(Site::cross_query, number, normed, block.query(normed), rows);
  AttentionShape shape{sources_, row_offsets_, model_.config().num_heads, number};
  shape.scaled = false;
  if (source_buckets_) shape.buckets = &*source_buckets_;
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
  const RowTokens row_tokens = add_tokens(n);
  const T5::Stack& stack = model_.decoder_;
  for (std::size_t l = 0; l < stack.layers.size(); ++l) {
    const T5::Layer& layer = stack.layers[l];
    const auto cross = static_cast<std::int64_t>(l);
    const std::int64_t number = stack.first_layer + cross;
    x = close_sub_layer(
        pass, {Site::attention_output, number, Purpose::attention_output_dropout, nullptr},
        attend_tokens(l, layer.attention_norm(x), rows, row_tokens), x, rows);
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
  std::vector<std::int64_t> kept_places, kept_tokens;
  PackedSequences sources;
  const std::vector<std::int64_t> offsets_before = std::exchange(row_offsets_, {0});
  bool all_stay = true;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].empty()) {
      all_stay = false;
      continue;
    }
    for (const std::int64_t row : rows[i]) {
      const auto begin = places_.begin() + row * tokens_;
      kept_places.insert(kept_places.end(), begin, begin + tokens_);
    }
    row_offsets_.push_back(row_offsets_.back() + static_cast<std::int64_t>(rows[i].size()));
    for (std::int64_t t = sources_.offsets[i]; t < sources_.offsets[i + 1]; ++t) {
      kept_tokens.push_back(t);
    }
    sources.offsets.push_back(static_cast<std::int64_t>(kept_tokens.size()));
    sources.examples.push_back(sources_.examples[i]);
  }
  places_ = std::move(kept_places);
  if (!all_stay || row_offsets_ != offsets_before) source_buckets_.reset();
  if (all_stay) return;
  const Tensor tokens = on_device(at::tensor(kept_tokens, at::kLong), model_.placement().device);
  for (Memory& memory : memory_) {
    memory.source_keys = memory.source_keys.index_select(0, tokens);
    memory.source_values = memory.source_values.index_select(0, tokens);
  }
  sources.trial_sequences = {0, sources.sequences()};
  sources_ = std::move(sources);
}

}  // namespace petlab::trainer
