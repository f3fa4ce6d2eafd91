#include "trainer/backbones/encoder.h"

#include <numeric>
#include <optional>
#include <utility>

#include "trainer/backbones/attention_buckets.h"
#include "trainer/compute/operations.h"
#include "trainer/compute/tensors.h"
#include "trainer/data/batches.h"

namespace petlab::trainer {

Encoder Encoder::load(const std::filesystem::path& folder, const Placement& placement) {
  const EncoderConfig config = read_encoder_config(folder);
  const BackboneWeights found = load_encoder_weights(folder, config);
  Weights weights;
  for (const auto& [name, view] : found.tensors) {
    weights.emplace(name, to_tensor(view, placement.computing()));
  }
  return Encoder(config, std::move(weights), placement);
}

Encoder::Encoder(EncoderConfig config, Weights weights, const Placement& placement)
    : config_(config), weights_(std::move(weights)), placement_(placement) {
  const auto weight = [&](const std::string& name) -> const Tensor& { return weights_.at(name); };
  const auto linear = [&](const std::string& name) {
    return Linear(weight(name + ".weight"), weight(name + ".bias"), placement_);
  };
  const auto norm = [&](const std::string& name) {
    return LayerNorm{weight(name + ".weight"), weight(name + ".bias"), config_.layer_norm_eps};
  };
  embeddings_norm_ = norm("embeddings.LayerNorm");
  for (std::int64_t l = 0; l < config_.num_layers; ++l) {
    const std::string layer = "encoder.layer." + std::to_string(l) + ".";
    const std::string self = layer + "attention.self.";
    const auto joined = [&](const std::string& kind) {
      return join_weights(weights_,
                          {self + "query" + kind, self + "key" + kind, self + "value" + kind});
    };
    const Tensor joined_weight = joined(".weight"), joined_bias = joined(".bias");
    AttentionBlock attention{linear(self + "query"), linear(self + "key"), linear(self + "value"),
                             linear(layer + "attention.output.dense")};
    if (joined_weight.defined()) attention.joined.emplace(joined_weight, joined_bias, placement_);
    const FeedForwardBlock feed_forward{linear(layer + "intermediate.dense"),
                                        linear(layer + "output.dense"), config_.activation};
    layers_.push_back({attention, norm(layer + "attention.output.LayerNorm"), feed_forward,
                       norm(layer + "output.LayerNorm")});
  }
}

sweeps::BackboneShape Encoder::shape() const {
  sweeps::BackboneShape shape;
  shape.model_type = config_.kind == EncoderKind::roberta ? "roberta" : "bert";
  shape.d_model = config_.d_model;
  shape.encoder_layers = config_.num_layers;
  shape.heads = config_.num_heads;
  shape.d_head = config_.d_model / config_.num_heads;
  shape.d_ff = config_.d_ff;
  shape.vocab_size = config_.vocab_size;
  shape.max_positions = config_.max_positions;
  shape.type_vocab_size = config_.token_types;
  return shape;
}

std::vector<Carrier> Encoder::carriers(Site site) const {
  std::vector<Carrier> all;
  if (is_cross_attention(site)) return all;
  // All sites are as wide as the model: projections, keys, values and sub-layers.
  for (std::int64_t l = 0; l < config_.num_layers; ++l) {
    all.push_back({site, l, config_.d_model, config_.d_model});
  }
  return all;
}

bool Encoder::is_decayed(std::string_view weight) const {
  return !weight.ends_with(".bias") && weight.find("LayerNorm") == std::string_view::npos;
}

std::unique_ptr<Backbone> Encoder::with_weights(Weights weights) const {
  return std::make_unique<Encoder>(config_, std::move(weights), placement_);
}

struct Encoder::Rows {
  const PackedSequences& sequences;
  PackedRows tokens;                        // with filling rows
  PackedRows firsts;                        // of the sequences' first tokens
  std::vector<std::int64_t> first_offsets;  // (sequences + 1): 0, 1, 2, …
  Tensor first_tokens;                      // (sequences): their rows
  // Only on a GPU: for the layers that compute all tokens, and for the last layer if it computes
  // first tokens only.
  std::optional<AttentionBuckets> all_buckets, first_buckets;

  Rows(const PackedSequences& of, at::Device device)
      : sequences(of),
        tokens(token_rows(of)),
        firsts(first_token_rows(of)),
        first_offsets(of.offsets.size()),
        first_tokens(on_device(
            at::tensor(at::IntArrayRef(of.offsets).slice(0, of.offsets.size() - 1), at::kLong),
            device)) {
    std::iota(first_offsets.begin(), first_offsets.end(), 0);
  }

  /// On a GPU, copies the inputs of attention and dropout to the device. Does nothing on a CPU.
  void prepare(const Dropout* dropout, std::int64_t layers, LastLayer last, at::Device device) {
    if (device.is_cpu()) return;
    const bool first = last == LastLayer::first_tokens && layers > 0;
    const std::int64_t whole = layers - (first ? 1 : 0);
    DrawnPlaces places{{Purpose::embedding_dropout, 0}};
    const auto add_layer = [&](std::int64_t l) {
      places.push_back({Purpose::attention_output_dropout, l});
      places.push_back({Purpose::feed_forward_output_dropout, l});
    };
    for (std::int64_t l = 0; l < whole; ++l) add_layer(l);
    prepare_dropout(tokens, dropout, {std::exchange(places, {})}, device);
    all_buckets = attention_buckets({sequences, sequences.offsets}, tokens.size(), whole, device);
    if (!first) return;
    add_layer(whole);
    prepare_dropout(firsts, dropout, {places}, device);
    first_buckets =
        attention_buckets({sequences, first_offsets, 1, whole}, firsts.size(), 1, device);
  }
};

Tensor Encoder::embed(const EncoderInput& input) const {
  const PackedSequences& sequences = input.sequences;
  const std::int64_t filling = filled_rows(sequences.tokens()) - sequences.tokens();
  const auto looked_up = [&](const char* table, const std::vector<std::int64_t>& ids,
                             std::int64_t padding) {
    const Tensor filled = at::constant_pad_nd(at::tensor(ids, at::kLong), {0, filling});
    return at::embedding(weights_.at(table), on_device(filled, placement_.device), padding);
  };
  // Padding rows of tables get no gradient: RoBERTa has one in the tables of words and positions,
  // BERT only in that of words.
  const std::int64_t pad = config_.pad_token_id;
  const std::int64_t position_pad = config_.kind == EncoderKind::roberta ? pad : -1;
  const Tensor words = looked_up("embeddings.word_embeddings.weight", sequences.ids, pad);
  const Tensor types = looked_up(
      "embeddings.token_type_embeddings.weight",
      input.type_ids.empty() ? std::vector<std::int64_t>(sequences.ids.size()) : input.type_ids,
      -1);
  return add_norm(
      words + types,
      looked_up("embeddings.position_embeddings.weight",
                input.position_ids.empty() ? counted_positions(sequences, config_.first_position())
                                           : input.position_ids,
                position_pad),
      embeddings_norm_);
}

Tensor Encoder::run_layer(std::int64_t index, const Tensor& x, const Pass& pass, const Rows& rows,
                          bool first_tokens) const {
  const Layer& layer = layers_[static_cast<std::size_t>(index)];
  const Tensor residual = first_tokens ? x.index_select(0, rows.first_tokens) : x;
  const PackedRows& output_rows = first_tokens ? rows.firsts : rows.tokens;
  AttentionShape shape{rows.sequences, first_tokens ? rows.first_offsets : rows.sequences.offsets,
                       config_.num_heads, index};
  const std::optional<AttentionBuckets>& buckets =
      first_tokens ? rows.first_buckets : rows.all_buckets;
  if (buckets) shape.buckets = &*buckets;
  const Tensor attended = close_sub_layer(
      pass,
      {Site::attention_output, index, Purpose::attention_output_dropout, &layer.attention_norm},
      layer.attention(pass, {residual, output_rows, x, rows.tokens, shape}), residual, output_rows);
  return close_sub_layer(
      pass,
      {Site::feed_forward_output, index, Purpose::feed_forward_output_dropout, &layer.output_norm},
      layer.feed_forward(pass, index, attended, output_rows), attended, output_rows);
}

std::vector<std::int64_t> Encoder::positions(std::span<const std::int64_t> ids) const {
  return config_.kind == EncoderKind::roberta ? roberta_positions(ids, config_.pad_token_id)
                                              : Backbone::positions(ids);
}

Tensor Encoder::encode(const EncoderInput& input, const Hooks& hooks, LastLayer last,
                       const Dropout* dropout, std::vector<Tensor>* hidden_states) const {
  const Pass pass{hooks, dropout};
  Rows rows(input.sequences, placement_.device);
  rows.prepare(dropout, config_.num_layers, last, placement_.device);
  Tensor x = pass.drop(embed(input), Purpose::embedding_dropout, 0, rows.tokens);
  const std::int64_t tokens = input.sequences.tokens();
  const auto tokens_of = [&](const Tensor& all) {
    return all.size(0) > tokens ? all.narrow(0, 0, tokens) : all;
  };
  if (hidden_states != nullptr) hidden_states->push_back(tokens_of(x));
  for (std::int64_t l = 0; l < config_.num_layers; ++l) {
    const bool first = last == LastLayer::first_tokens && l + 1 == config_.num_layers;
    x = run_layer(l, x, pass, rows, first);
    if (hidden_states != nullptr) hidden_states->push_back(tokens_of(x));
  }
  return tokens_of(x);
}

}  // namespace petlab::trainer
