#include "trainer/backbones/encoder.h"

#include <numeric>
#include <utility>

#include "trainer/backbones/attention.h"
#include "trainer/backbones/packed_rows.h"
#include "trainer/compute/operations.h"
#include "trainer/compute/tensors.h"
#include "trainer/data/batches.h"

namespace petlab::trainer {
namespace {

Tensor activate(const Tensor& x, Activation activation) {
  switch (activation) {
    case Activation::gelu:
      return apply_gelu(x);
    case Activation::gelu_tanh:
      return at::gelu(x, "tanh");
    case Activation::relu:
      return at::relu(x);
  }
  throw std::logic_error("an activation without a function");
}

}  // namespace

Tensor Encoder::Linear::operator()(const Tensor& x) const { return apply_linear(x, weight, bias); }

Encoder Encoder::load(const std::filesystem::path& folder, at::ScalarType dtype) {
  const EncoderConfig config = read_encoder_config(folder);
  const BackboneWeights found = load_encoder_weights(folder, config);
  Weights weights;
  for (const auto& [name, view] : found.tensors) weights.emplace(name, to_tensor(view, dtype));
  return Encoder(config, std::move(weights));
}

Encoder::Encoder(EncoderConfig config, Weights weights)
    : config_(config), weights_(std::move(weights)) {
  const auto weight = [&](const std::string& name) -> const Tensor& { return weights_.at(name); };
  const auto linear = [&](const std::string& name) {
    return Linear{weight(name + ".weight"), weight(name + ".bias")};
  };
  const auto norm = [&](const std::string& name) {
    return LayerNorm{weight(name + ".weight"), weight(name + ".bias"), config_.layer_norm_eps};
  };
  embeddings_norm_ = norm("embeddings.LayerNorm");
  for (std::int64_t l = 0; l < config_.num_layers; ++l) {
    const std::string layer = "encoder.layer." + std::to_string(l) + ".";
    layers_.push_back(
        {linear(layer + "attention.self.query"), linear(layer + "attention.self.key"),
         linear(layer + "attention.self.value"), linear(layer + "attention.output.dense"),
         linear(layer + "intermediate.dense"), linear(layer + "output.dense"),
         norm(layer + "attention.output.LayerNorm"), norm(layer + "output.LayerNorm")});
  }
}

Encoder Encoder::trainable_copy() const {
  Weights copies;
  for (const auto& [name, tensor] : weights_) {
    copies.emplace(name, tensor.detach().clone().requires_grad_(true));
  }
  return Encoder(config_, std::move(copies));
}

/// What the layers of one forward pass share.
struct Encoder::Pass {
  const PackedSequences& sequences;
  const Hooks& hooks;
  const Dropout* dropout;
  at::ScalarType dtype;
  PackedRows tokens;                        // and filling rows
  PackedRows firsts;                        // of the sequences' first tokens
  std::vector<std::int64_t> first_offsets;  // (sequences + 1): 0, 1, 2, …
  Tensor first_tokens;                      // (sequences): their rows

  Pass(const PackedSequences& of, const Hooks& h, const Dropout* d, at::ScalarType t)
      : sequences(of),
        hooks(h),
        dropout(d),
        dtype(t),
        tokens(token_rows(of)),
        firsts(first_token_rows(of)),
        first_offsets(of.offsets.size()),
        first_tokens(
            at::tensor(at::IntArrayRef(of.offsets).slice(0, of.offsets.size() - 1), at::kLong)) {
    std::iota(first_offsets.begin(), first_offsets.end(), 0);
  }

  Tensor drop(const Tensor& x, Purpose purpose, std::int64_t layer, const PackedRows& rows) const {
    if (dropout == nullptr || dropout->hidden <= 0) return x;
    return x * dropout_multipliers(*dropout, dropout->hidden, purpose, layer, rows.keys, x.size(1),
                                   dtype)
                   .to(x.device());
  }

  /// The end of a sub-layer: hooks, dropout, residual and norm.
  Tensor close(SubLayer which, Tensor output, const Tensor& residual, const LayerNorm& norm,
               Purpose purpose, std::int64_t layer, const PackedRows& rows) const {
    const HookPlace place{layer, rows.trial_rows};
    const bool hooked = hooks.acts_on(which);
    if (hooked) output = hooks.before_dropout({which, place, residual, output, &norm});
    output = drop(output, purpose, layer, rows);
    if (hooked) output = hooks.after_dropout({which, place, residual, output, &norm});
    return add_norm(output, residual, norm);
  }
};

Tensor Encoder::embed(const EncoderInput& input) const {
  const PackedSequences& sequences = input.sequences;
  const std::int64_t filling = filled_rows(sequences.tokens()) - sequences.tokens();
  const auto looked_up = [&](const char* table, const std::vector<std::int64_t>& ids,
                             std::int64_t padding) {
    return at::embedding(weights_.at(table),
                         at::constant_pad_nd(at::tensor(ids, at::kLong), {0, filling}), padding);
  };
  // A padding row gets no gradient: RoBERTa has one in both tables, BERT in that of the words.
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

Tensor Encoder::run_layer(std::int64_t index, const Tensor& x, const Pass& pass,
                          bool first_tokens) const {
  const Layer& layer = layers_[static_cast<std::size_t>(index)];
  const Tensor residual = first_tokens ? x.index_select(0, pass.first_tokens) : x;
  const PackedRows& rows = first_tokens ? pass.firsts : pass.tokens;
  const HookPlace all{index, pass.tokens.trial_rows};
  const HookPlace own{index, rows.trial_rows};

  Tensor query = layer.query(residual);
  Tensor value = layer.value(x);
  if (pass.hooks.acts_on(Projection::query)) {
    query = pass.hooks.projected({Projection::query, own, residual, query});
  }
  if (pass.hooks.acts_on(Projection::value)) {
    value = pass.hooks.projected({Projection::value, all, x, value});
  }
  const AttentionShape shape{pass.sequences,
                             first_tokens ? pass.first_offsets : pass.sequences.offsets,
                             config_.num_heads, index};
  const Tensor seen =
      attention(query, layer.key(x), value, pass.hooks.prefix(index), shape, pass.dropout);
  const Tensor attended =
      pass.close(SubLayer::attention, layer.attention_output(seen), residual, layer.attention_norm,
                 Purpose::attention_output_dropout, index, rows);
  const Tensor inner = activate(layer.intermediate(attended), config_.activation);
  return pass.close(SubLayer::feed_forward, layer.output(inner), attended, layer.output_norm,
                    Purpose::feed_forward_output_dropout, index, rows);
}

Tensor Encoder::forward(const EncoderInput& input, const Hooks& hooks, LastLayer last,
                        const Dropout* dropout, std::vector<Tensor>* hidden_states) const {
  const Pass pass(input.sequences, hooks, dropout, dtype());
  Tensor x = pass.drop(embed(input), Purpose::embedding_dropout, 0, pass.tokens);
  const std::int64_t tokens = input.sequences.tokens();
  const auto tokens_of = [&](const Tensor& rows) {
    return rows.size(0) > tokens ? rows.narrow(0, 0, tokens) : rows;
  };
  if (hidden_states != nullptr) hidden_states->push_back(tokens_of(x));
  for (std::int64_t l = 0; l < config_.num_layers; ++l) {
    const bool first = last == LastLayer::first_tokens && l + 1 == config_.num_layers;
    x = run_layer(l, x, pass, first);
    if (hidden_states != nullptr) hidden_states->push_back(tokens_of(x));
  }
  return tokens_of(x);
}

}  // namespace petlab::trainer
