#include "trainer/backbones/t5.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "trainer/compute/operations.h"
#include "trainer/compute/smoothed_loss.h"
#include "trainer/compute/tensors.h"

namespace petlab::trainer {
namespace {

constexpr AttentionSites kCrossSites{Site::cross_query, Site::cross_value,
                                     Site::cross_keys_and_values};

}  // namespace

T5 T5::load(const std::filesystem::path& folder, const Placement& placement) {
  const T5Checkpoint found = read_t5_checkpoint(folder);
  Weights weights;
  for (const auto& [name, view] : found.weights.tensors) {
    weights.emplace(name, to_tensor(view, placement.computing()));
  }
  return T5(found.config, std::move(weights), placement);
}

T5::T5(T5Config config, Weights weights, const Placement& placement)
    : config_(config),
      weights_(std::move(weights)),
      placement_(placement),
      encoder_(stack_of(false)),
      decoder_(stack_of(true)),
      output_weight_(weights_.find(config_.tied ? "shared.weight" : "lm_head.weight")->second,
                     placement_.short_products) {}

T5::Stack T5::stack_of(bool decoder) {
  const auto linear = [&](const std::string& name) {
    return Linear(weights_.at(name + ".weight"), Tensor(), placement_);
  };
  const auto norm = [&](const std::string& name) {
    return RmsNorm{weights_.at(name + ".weight"), config_.layer_norm_eps};
  };
  const auto attention = [&](const std::string& name) {
    return AttentionBlock{linear(name + ".q"), linear(name + ".k"), linear(name + ".v"),
                          linear(name + ".o")};
  };
  const auto self_attention = [&](const std::string& name) {
    const Tensor joined =
        join_weights(weights_, {name + ".q.weight", name + ".k.weight", name + ".v.weight"});
    AttentionBlock block = attention(name);
    if (joined.defined()) block.joined.emplace(joined, Tensor(), placement_);
    return block;
  };
  Stack stack;
  stack.decoder = decoder;
  stack.first_layer = decoder ? config_.num_layers : 0;
  const std::string name = decoder ? "decoder" : "encoder";
  for (std::int64_t l = 0; l < (decoder ? config_.num_decoder_layers : config_.num_layers); ++l) {
    const std::string block = name + ".block." + std::to_string(l) + ".layer.";
    Layer layer;
    layer.attention = self_attention(block + "0.SelfAttention");
    layer.attention_norm = norm(block + "0.layer_norm");
    if (decoder) {
      layer.cross = attention(block + "1.EncDecAttention");
      layer.cross_norm = norm(block + "1.layer_norm");
    }
    const std::string last = block + (decoder ? "2." : "1.");
    FeedForwardBlock& feed_forward = layer.feed_forward;
    feed_forward.inner = linear(last + "DenseReluDense.wi" + (config_.gated ? "_0" : ""));
    feed_forward.output = linear(last + "DenseReluDense.wo");
    feed_forward.activation = config_.activation;
    if (config_.gated) feed_forward.gate = linear(last + "DenseReluDense.wi_1");
    feed_forward.inner_dropout = true;
    layer.feed_forward_norm = norm(last + "layer_norm");
    stack.layers.push_back(std::move(layer));
  }
  stack.position_table =
      weights_.at(name + ".block.0.layer.0.SelfAttention.relative_attention_bias.weight");
  stack.final_norm = norm(name + ".final_layer_norm");
  return stack;
}

sweeps::BackboneShape T5::shape() const {
  sweeps::BackboneShape shape;
  shape.model_type = "t5";
  shape.d_model = config_.d_model;
  shape.encoder_layers = config_.num_layers;
  shape.decoder_layers = config_.num_decoder_layers;
  shape.heads = config_.num_heads;
  shape.d_head = config_.d_kv;
  shape.d_ff = config_.d_ff;
  shape.vocab_size = config_.vocab_size;
  shape.relative_buckets = config_.num_buckets;
  shape.gated_ff = config_.gated;
  shape.tied_embeddings = config_.tied;
  return shape;
}

std::vector<Carrier> T5::carriers(Site site) const {
  const bool sub_layer = site == Site::attention_output || site == Site::feed_forward_output ||
                         site == Site::cross_attention_output;
  const std::int64_t width_out = sub_layer ? config_.d_model : config_.inner();
  const std::int64_t layers = is_cross_attention(site)
                                  ? config_.num_decoder_layers
                                  : config_.num_layers + config_.num_decoder_layers;
  std::vector<Carrier> all;
  for (std::int64_t l = 0; l < layers; ++l) all.push_back({site, l, config_.d_model, width_out});
  return all;
}

std::int64_t T5::max_tokens() const { return std::numeric_limits<std::int64_t>::max(); }

bool T5::is_decayed(std::string_view weight) const {
  return weight.find("layer_norm") == std::string_view::npos;
}

std::unique_ptr<Backbone> T5::with_weights(Weights weights) const {
  return std::make_unique<T5>(config_, std::move(weights), placement_);
}

Tensor T5::position_bias(const Stack& stack, const PackedSequences& sequences) const {
  std::int64_t longest = 1;
  for (std::size_t s = 0; s + 1 < sequences.offsets.size(); ++s) {
    longest = std::max(longest, sequences.offsets[s + 1] - sequences.offsets[s]);
  }
  std::vector<std::int64_t> buckets;
  for (std::int64_t distance = 1 - longest; distance < longest; ++distance) {
    buckets.push_back(
        relative_bucket(distance, !stack.decoder, config_.num_buckets, config_.max_distance));
  }
  const Tensor rows = on_device(at::tensor(buckets, at::kLong), placement_.device);
  return at::embedding(stack.position_table, rows).t().contiguous();
}

Tensor T5::run_layer(const Stack& stack, std::size_t index, Tensor x, const Pass& pass,
                     const AttentionShape& shape, const PackedRows& rows,
                     const Sources* sources) const {
  const Layer& layer = stack.layers[index];
  const Tensor normed = layer.attention_norm(x);
  x = close_sub_layer(
      pass, {Site::attention_output, shape.layer, Purpose::attention_output_dropout, nullptr},
      layer.attention(pass, {normed, rows, normed, rows, shape}), x, rows);
  if (sources != nullptr) {
    const auto l = static_cast<std::int64_t>(index);
    AttentionShape cross{sources->sequences, shape.query_offsets, config_.num_heads, l};
    cross.scaled = false;
    cross.dropout = Purpose::cross_attention_dropout;
    if (sources->buckets) cross.buckets = &*sources->buckets;
    const Tensor asking = layer.cross_norm(x);
    x = close_sub_layer(
        pass, {Site::cross_attention_output, l, Purpose::cross_attention_output_dropout, nullptr},
        (*layer.cross)(pass, {asking, rows, sources->states, sources->rows, cross, kCrossSites}), x,
        rows);
  }
  return close_sub_layer(
      pass, {Site::feed_forward_output, shape.layer, Purpose::feed_forward_output_dropout, nullptr},
      layer.feed_forward(pass, shape.layer, layer.feed_forward_norm(x), rows), x, rows);
}

std::vector<DrawnPlaces> T5::dropout_places(const Stack& stack) {
  DrawnPlaces of_states{{Purpose::embedding_dropout, stack.first_layer}};
  DrawnPlaces of_inner;
  for (std::size_t l = 0; l < stack.layers.size(); ++l) {
    const auto cross = static_cast<std::int64_t>(l);
    const std::int64_t layer = stack.first_layer + cross;
    of_states.push_back({Purpose::attention_output_dropout, layer});
    if (stack.decoder) of_states.push_back({Purpose::cross_attention_output_dropout, cross});
    of_states.push_back({Purpose::feed_forward_output_dropout, layer});
    of_inner.push_back({Purpose::feed_forward_inner_dropout, layer});
  }
  of_states.push_back({Purpose::final_dropout, stack.first_layer});
  return {of_states, of_inner};
}

Tensor T5::run(const Stack& stack, const PackedSequences& sequences, const Sources* sources,
               const Pass& pass, std::vector<Tensor>* hidden_states) const {
  const std::int64_t tokens = sequences.tokens();
  PackedRows rows = token_rows(sequences);
  prepare_dropout(rows, pass.dropout, dropout_places(stack), placement_.device);
  const auto tokens_of = [&](const Tensor& all) { return all.narrow(0, 0, tokens); };
  const Tensor ids =
      at::constant_pad_nd(at::tensor(sequences.ids, at::kLong), {0, rows.size() - tokens});
  // The first layer's number separates the two stacks' streams for this dropout.
  Tensor x =
      pass.drop(at::embedding(weights_.at("shared.weight"), on_device(ids, placement_.device)),
                Purpose::embedding_dropout, stack.first_layer, rows);
  if (hidden_states != nullptr) hidden_states->push_back(tokens_of(x));
  AttentionShape shape{sequences, sequences.offsets, config_.num_heads, stack.first_layer};
  shape.scaled = false;
  shape.causal = stack.decoder;
  shape.position_bias = position_bias(stack, sequences);
  std::optional<AttentionBuckets> buckets;
  if (!placement_.device.is_cpu()) {
    buckets = attention_buckets(shape, rows.size(), static_cast<std::int64_t>(stack.layers.size()),
                                placement_.device);
    shape.buckets = &*buckets;
  }
  for (std::size_t l = 0; l < stack.layers.size(); ++l) {
    shape.layer = stack.first_layer + static_cast<std::int64_t>(l);
    x = run_layer(stack, l, x, pass, shape, rows, sources);
    if (l + 1 == stack.layers.size()) {
      x = pass.drop(stack.final_norm(x), Purpose::final_dropout, stack.first_layer, rows);
    }
    if (hidden_states != nullptr) hidden_states->push_back(tokens_of(x));
  }
  return tokens_of(x);
}

Tensor T5::encode_sources(const PackedSequences& sources, const Hooks& hooks,
                          const Dropout* dropout, std::vector<Tensor>* hidden_states) const {
  return run(encoder_, sources, nullptr, {hooks, dropout}, hidden_states);
}

Tensor T5::encode(const EncoderInput& input, const Hooks& hooks, LastLayer last,
                  const Dropout* dropout, std::vector<Tensor>* hidden_states) const {
  const Tensor states = encode_sources(input.sequences, hooks, dropout, hidden_states);
  if (last == LastLayer::all_tokens) return states;
  const at::IntArrayRef offsets(input.sequences.offsets);
  const Tensor firsts = at::tensor(offsets.slice(0, offsets.size() - 1), at::kLong);
  return states.index_select(0, on_device(firsts, placement_.device));
}

Tensor T5::decode(const PackedSequences& targets, const PackedSequences& sources,
                  const Tensor& encoded, const Hooks& hooks, const Dropout* dropout,
                  std::vector<Tensor>* hidden_states) const {
  const PackedRows rows = token_rows(sources);
  const Tensor filled = at::constant_pad_nd(encoded, {0, 0, 0, rows.size() - encoded.size(0)});
  Sources seen{sources, rows, filled};
  if (!placement_.device.is_cpu()) {
    AttentionShape cross{sources, targets.offsets};
    cross.dropout = Purpose::cross_attention_dropout;
    seen.buckets = attention_buckets(cross, filled_rows(targets.tokens()),
                                     config_.num_decoder_layers, placement_.device);
  }
  return run(decoder_, targets, &seen, {hooks, dropout}, hidden_states);
}

Tensor T5::scaled_output(const Tensor& decoded) const {
  if (!config_.scaled_output) return decoded;
  return decoded * (1 / std::sqrt(static_cast<double>(config_.d_model)));
}

Tensor T5::logits(const Tensor& decoded) const {
  return apply_linear(scaled_output(decoded), output_weight_, {});
}

Tensor T5::smoothed_losses(const Tensor& decoded, const Tensor& targets, double smoothing) const {
  // Fill up to the usual numbers of rows, of which there are few.
  const std::int64_t more = filled_rows(decoded.size(0)) - decoded.size(0);
  const Tensor losses =
      projected_smoothed_losses(at::constant_pad_nd(scaled_output(decoded), {0, 0, 0, more}),
                                output_weight_, at::constant_pad_nd(targets, {0, more}), smoothing);
  return losses.narrow(0, 0, decoded.size(0));
}

}  // namespace petlab::trainer
