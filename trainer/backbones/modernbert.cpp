#include "trainer/backbones/modernbert.h"

#include <array>
#include <cmath>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>

#include "trainer/backbones/attention_buckets.h"
#include "trainer/compute/random_stream.h"
#include "trainer/compute/rotary.h"
#include "trainer/compute/tensors.h"
#include "trainer/data/batches.h"

namespace petlab::trainer {

ModernBert ModernBert::load(const std::filesystem::path& folder, const Placement& placement) {
  const ModernBertConfig config = read_modernbert_config(folder);
  const BackboneWeights found = load_modernbert_weights(folder, config);
  Weights weights;
  for (const auto& [name, view] : found.tensors) {
    weights.emplace(name, to_tensor(view, placement.computing()));
  }
  return ModernBert(config, std::move(weights), placement);
}

ModernBert::ModernBert(ModernBertConfig config, Weights weights, const Placement& placement)
    : config_(std::move(config)), weights_(std::move(weights)), placement_(placement) {
  const auto find = [&](const std::string& name) {
    const auto found = weights_.find(name);
    return found == weights_.end() ? Tensor() : found->second;
  };
  // Parts of a layer whose weight joins the outputs of several: rows [first, first + count).
  const auto part = [&](const std::string& name, std::int64_t first, std::int64_t count) {
    const Tensor bias = find(name + ".bias");
    return Linear(find(name + ".weight").narrow(0, first, count),
                  bias.defined() ? bias.narrow(0, first, count) : bias, placement_);
  };
  const auto linear = [&](const std::string& name) {
    return Linear(find(name + ".weight"), find(name + ".bias"), placement_);
  };
  const auto norm = [&](const std::string& name) {
    return LayerNorm{find(name + ".weight"), find(name + ".bias"), config_.norm_eps};
  };
  const std::int64_t d = config_.d_model;
  embeddings_norm_ = norm("embeddings.norm");
  final_norm_ = norm("final_norm");
  for (std::int64_t l = 0; l < config_.num_layers(); ++l) {
    const std::string layer = "layers." + std::to_string(l) + ".";
    const std::string joined = layer + "attn.Wqkv", inner = layer + "mlp.Wi";
    Layer made{
        std::nullopt,
        {part(joined, 0, d), part(joined, d, d), part(joined, 2 * d, d), linear(layer + "attn.Wo")},
        norm(layer + "mlp_norm"),
        {part(inner, 0, config_.d_ff), linear(layer + "mlp.Wo"), Activation::gelu,
         part(inner, config_.d_ff, config_.d_ff), /*inner_dropout=*/true}};
    if (l > 0) made.attention_norm = norm(layer + "attn_norm");
    // On a device, one product is faster than three.
    if (!placement_.device.is_cpu()) made.attention.joined = linear(joined);
    layers_.push_back(std::move(made));
  }
}

Backbone::Weights ModernBert::random_weights(const ModernBertConfig& config, double deviation,
                                             std::uint64_t seed) {
  const double of_outputs = deviation / std::sqrt(2.0 * static_cast<double>(config.num_layers()));
  Weights weights;
  std::uint64_t number = 0;
  for (const WantedTensor& wanted : modernbert_tensors(config)) {
    Tensor weight = at::zeros(wanted.shape, at::kFloat);
    ++number;
    if (wanted.name.ends_with("norm.weight")) {
      weight.fill_(1);
    } else if (wanted.name.ends_with(".weight")) {
      fill_normal(seed, number, wanted.name.ends_with("Wo.weight") ? of_outputs : deviation,
                  {weight.mutable_data_ptr<float>(), static_cast<std::size_t>(weight.numel())});
    }
    weights.emplace(wanted.name, weight);
  }
  return weights;
}

sweeps::BackboneShape ModernBert::shape() const {
  sweeps::BackboneShape shape;
  shape.model_type = "modernbert";
  shape.d_model = config_.d_model;
  shape.encoder_layers = config_.num_layers();
  shape.heads = config_.num_heads;
  shape.d_head = config_.d_model / config_.num_heads;
  shape.d_ff = config_.d_ff;
  shape.vocab_size = config_.vocab_size;
  shape.max_positions = config_.max_tokens;
  shape.gated_ff = true;
  shape.biased_attention = config_.biased_attention;
  shape.biased_ff = config_.biased_feed_forward;
  shape.biased_norms = config_.biased_norms;
  return shape;
}

std::vector<Carrier> ModernBert::carriers(Site site) const {
  std::vector<Carrier> all;
  if (is_cross_attention(site)) return all;
  for (std::int64_t l = 0; l < config_.num_layers(); ++l) {
    all.push_back({site, l, config_.d_model, config_.d_model});
  }
  return all;
}

bool ModernBert::is_decayed(std::string_view weight) const {
  return !weight.ends_with(".bias") && !weight.ends_with("norm.weight");
}

std::unique_ptr<Backbone> ModernBert::with_weights(Weights weights) const {
  return std::make_unique<ModernBert>(config_, std::move(weights), placement_);
}

struct ModernBert::Rows {
  /// What layers of one kind of attention share.
  struct OfKind {
    Rotary tokens, firsts;
    // Only on a GPU.
    std::optional<AttentionBuckets> all_buckets, first_buckets;
  };
  const PackedSequences& sequences;
  PackedRows tokens;                        // with filling rows
  PackedRows firsts;                        // of the sequences' first tokens
  std::vector<std::int64_t> first_offsets;  // (sequences + 1): 0, 1, 2, …
  Tensor first_tokens;                      // (sequences): their rows
  std::array<OfKind, 2> kinds;              // global, local

  Rows(const EncoderInput& input, const ModernBertConfig& config, const Placement& placement,
       const Dropout* dropout)
      : sequences(input.sequences),
        tokens(token_rows(sequences)),
        firsts(first_token_rows(sequences)),
        first_offsets(sequences.offsets.size()) {
    std::iota(first_offsets.begin(), first_offsets.end(), 0);
    const std::vector<std::int64_t> positions =
        input.position_ids.empty() ? counted_positions(sequences, 0) : input.position_ids;
    std::vector<std::int64_t> first_rows, first_positions;
    for (std::size_t s = 0; s + 1 < sequences.offsets.size(); ++s) {
      const std::int64_t first = sequences.offsets[s], end = sequences.offsets[s + 1];
      first_rows.push_back(first);
      first_positions.push_back(positions[static_cast<std::size_t>(first)]);
      if (positions[static_cast<std::size_t>(end - 1)] !=
          first_positions.back() + end - 1 - first) {
        throw std::invalid_argument("sequence " + std::to_string(s) +
                                    " has a gap in its positions, must have none: a window of "
                                    "ModernBERT's attention would not count it");
      }
    }
    first_tokens = on_device(at::tensor(first_rows, at::kLong), placement.device);
    DrawnPlaces of_states{{Purpose::embedding_dropout, 0}}, of_inner;
    for (std::int64_t l = 0; l < config.num_layers(); ++l) {
      of_states.push_back({Purpose::attention_output_dropout, l});
      of_inner.push_back({Purpose::feed_forward_inner_dropout, l});
    }
    for (PackedRows* const rows : {&tokens, &firsts}) {
      prepare_dropout(*rows, dropout, {of_states, of_inner}, placement.device);
    }
    for (const bool local : {false, true}) {
      const double theta = local ? config.local_theta : config.global_theta;
      const std::int64_t d_head = config.d_model / config.num_heads;
      OfKind& kind = kinds[local ? 1 : 0];
      kind.tokens = Rotary(positions, tokens.size(), d_head, theta, placement);
      kind.firsts = Rotary(first_positions, firsts.size(), d_head, theta, placement);
      if (placement.device.is_cpu()) continue;
      const auto buckets = [&](std::span<const std::int64_t> offsets, const PackedRows& rows) {
        AttentionShape shape{sequences, offsets, config.num_heads};
        if (local) shape.window = config.window;
        return attention_buckets(shape, rows.size(), config.num_layers(), placement.device);
      };
      kind.all_buckets = buckets(sequences.offsets, tokens);
      kind.first_buckets = buckets(first_offsets, firsts);
    }
  }
};

Tensor ModernBert::run_layer(std::int64_t index, const Tensor& x, const Pass& pass,
                             const Rows& rows, bool first_tokens) const {
  const Layer& layer = layers_[static_cast<std::size_t>(index)];
  const bool local = config_.local[static_cast<std::size_t>(index)];
  const Rows::OfKind& kind = rows.kinds[local ? 1 : 0];
  const PackedRows& output_rows = first_tokens ? rows.firsts : rows.tokens;
  const auto of_outputs = [&](const Tensor& all) {
    return first_tokens ? all.index_select(0, rows.first_tokens) : all;
  };
  const Tensor normed = layer.attention_norm ? (*layer.attention_norm)(x) : x;
  const Tensor queries = of_outputs(normed);
  AttentionInput in{queries,
                    output_rows,
                    normed,
                    rows.tokens,
                    {rows.sequences, first_tokens ? rows.first_offsets : rows.sequences.offsets,
                     config_.num_heads, index}};
  if (local) in.shape.window = config_.window;
  const auto& buckets = first_tokens ? kind.first_buckets : kind.all_buckets;
  if (buckets) in.shape.buckets = &*buckets;
  in.query_rotary = first_tokens ? &kind.firsts : &kind.tokens;
  in.key_rotary = &kind.tokens;
  const Tensor attended = close_sub_layer(
      pass, {Site::attention_output, index, Purpose::attention_output_dropout, nullptr},
      layer.attention(pass, in), of_outputs(x), output_rows);
  // The sub-layer has dropout inside, and none at its end.
  return close_sub_layer(
      {pass.hooks, nullptr}, {Site::feed_forward_output, index},
      layer.feed_forward(pass, index, layer.feed_forward_norm(attended), output_rows), attended,
      output_rows);
}

Tensor ModernBert::encode(const EncoderInput& input, const Hooks& hooks, LastLayer last,
                          const Dropout* dropout, std::vector<Tensor>* hidden_states) const {
  const Pass pass{hooks, dropout};
  const Rows rows(input, config_, placement_, dropout);
  const std::int64_t tokens = input.sequences.tokens();
  const Tensor ids = at::constant_pad_nd(at::tensor(input.sequences.ids, at::kLong),
                                         {0, rows.tokens.size() - tokens});
  // The row of the padding token gets no gradient.
  const Tensor embedded = at::embedding(weights_.at("embeddings.tok_embeddings.weight"),
                                        on_device(ids, placement_.device), config_.pad_token_id);
  Tensor x = pass.drop(embeddings_norm_(embedded), Purpose::embedding_dropout, 0, rows.tokens);
  const auto tokens_of = [&](const Tensor& all) {
    return all.size(0) > tokens ? all.narrow(0, 0, tokens) : all;
  };
  if (hidden_states != nullptr) hidden_states->push_back(tokens_of(x));
  for (std::int64_t l = 0; l < config_.num_layers(); ++l) {
    const bool is_last = l + 1 == config_.num_layers();
    x = run_layer(l, x, pass, rows, is_last && last == LastLayer::first_tokens);
    if (is_last) x = final_norm_(x);
    if (hidden_states != nullptr) hidden_states->push_back(tokens_of(x));
  }
  return tokens_of(x);
}

}  // namespace petlab::trainer
