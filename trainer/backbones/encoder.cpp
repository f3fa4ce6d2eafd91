#include "trainer/backbones/encoder.h"

#include <cstring>
#include <utility>

#include "trainer/backbones/attention.h"
#include "trainer/compute/operations.h"

namespace petlab::trainer {
namespace {

at::ScalarType scalar_type(DType dtype) {
  switch (dtype) {
    case DType::boolean:
      return at::kBool;
    case DType::u8:
      return at::kByte;
    case DType::i8:
      return at::kChar;
    case DType::u16:
      return at::kUInt16;
    case DType::i16:
      return at::kShort;
    case DType::u32:
      return at::kUInt32;
    case DType::i32:
      return at::kInt;
    case DType::u64:
      return at::kUInt64;
    case DType::i64:
      return at::kLong;
    case DType::f16:
      return at::kHalf;
    case DType::bf16:
      return at::kBFloat16;
    case DType::f32:
      return at::kFloat;
    case DType::f64:
      return at::kDouble;
  }
  throw std::logic_error("an element type without a counterpart");
}

DType dtype_of(at::ScalarType type) {
  for (const DType dtype : {DType::boolean, DType::u8, DType::i8, DType::i16, DType::i32,
                            DType::i64, DType::f16, DType::bf16, DType::f32, DType::f64}) {
    if (scalar_type(dtype) == type) return dtype;
  }
  throw std::logic_error("an element type without a counterpart");
}

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

/// Tokens of a batch and rows that fill it up. oneDNN compiles a product for each number of rows
/// that it meets, which takes as long as a few products: so there must not be too many of them.
std::int64_t filled_rows(std::int64_t tokens) {
  const std::int64_t step = tokens <= 512 ? 16 : tokens <= 1024 ? 32 : 64;
  return (tokens + step - 1) / step * step;
}

/// The key of a filling row's dropout.
constexpr std::int64_t kNoExample = 0xFFFFFFFF;

}  // namespace

Tensor to_tensor(const TensorView& view) {
  const at::ScalarType type = scalar_type(view.dtype);
  const auto address = reinterpret_cast<std::uintptr_t>(view.bytes.data());
  if (view.bytes.empty() || address % size_of(view.dtype) != 0) {
    Tensor copy = at::empty(view.shape, type);
    if (!view.bytes.empty())
      std::memcpy(copy.mutable_data_ptr(), view.bytes.data(), view.bytes.size());
    return copy;
  }
  // LibTorch has no constant tensors; nothing writes to a backbone's weights.
  void* const data = const_cast<std::byte*>(view.bytes.data());
  return at::from_blob(
      data, view.shape, [owner = view.owner](void*) mutable { owner.reset(); },
      at::TensorOptions().dtype(type));
}

Tensor to_tensor(const TensorView& view, at::ScalarType dtype) { return to_tensor(view).to(dtype); }

TensorView to_view(const Tensor& tensor) {
  auto kept = std::make_shared<Tensor>(tensor.detach().contiguous());
  TensorView view;
  view.dtype = dtype_of(kept->scalar_type());
  view.shape = kept->sizes().vec();
  view.bytes = {static_cast<const std::byte*>(kept->const_data_ptr()), kept->nbytes()};
  view.owner = kept;
  return view;
}

EncoderInput encoder_input(const PackedBatch& batch, std::int64_t task) {
  EncoderInput input;
  input.ids = at::tensor(batch.ids, at::kLong);
  input.type_ids = at::tensor(batch.type_ids, at::kLong);
  input.position_ids = at::tensor(batch.position_ids, at::kLong);
  input.offsets = batch.offsets;
  input.examples = batch.examples;
  input.trial_sequences = {0, input.sequences()};
  input.task = task;
  return input;
}

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
  const EncoderInput& input;
  const Hooks& hooks;
  const Dropout* dropout;
  at::ScalarType dtype;
  std::vector<std::int64_t> first_offsets;  // (sequences + 1): 0, 1, 2, …
  std::vector<RowKey> rows;                 // (tokens)
  std::vector<RowKey> first_rows;           // (sequences)
  std::vector<std::int64_t> trial_rows;     // (K + 1), in tokens
  Tensor first_tokens;                      // (sequences): their rows

  Pass(const EncoderInput& in, const Hooks& h, const Dropout* d, at::ScalarType t)
      : input(in), hooks(h), dropout(d), dtype(t) {
    std::vector<std::int64_t> first;
    for (std::size_t k = 0; k + 1 < in.trial_sequences.size(); ++k) {
      trial_rows.push_back(in.offsets[static_cast<std::size_t>(in.trial_sequences[k])]);
      for (std::int64_t s = in.trial_sequences[k]; s < in.trial_sequences[k + 1]; ++s) {
        const auto i = static_cast<std::size_t>(s);
        const std::int64_t begin = in.offsets[i];
        first.push_back(begin);
        first_offsets.push_back(s);
        for (std::int64_t token = begin; token < in.offsets[i + 1]; ++token) {
          rows.push_back({static_cast<std::int64_t>(k), in.examples[i], token - begin});
        }
        first_rows.push_back({static_cast<std::int64_t>(k), in.examples[i], 0});
      }
    }
    first_offsets.push_back(in.sequences());
    // The filling rows are the last trial's: nothing sees them, and their gradient is 0.
    const std::int64_t filled = filled_rows(in.offsets.back());
    for (std::int64_t row = in.offsets.back(); row < filled; ++row) {
      rows.push_back({static_cast<std::int64_t>(trial_rows.size()) - 1, kNoExample, row});
    }
    trial_rows.push_back(filled);
    first_tokens = at::tensor(first, at::kLong).to(in.ids.device());
  }

  Tensor drop(const Tensor& x, Purpose purpose, std::int64_t layer,
              const std::vector<RowKey>& keys) const {
    if (dropout == nullptr || dropout->hidden <= 0) return x;
    return x *
           dropout_multipliers(*dropout, dropout->hidden, purpose, layer, keys, x.size(1), dtype)
               .to(x.device());
  }

  /// The end of a sub-layer: hooks, dropout, residual and norm.
  Tensor close(SubLayer which, Tensor output, const Tensor& residual, const LayerNorm& norm,
               Purpose purpose, const HookPlace& place, const std::vector<RowKey>& keys) const {
    const bool hooked = hooks.acts_on(which);
    if (hooked) output = hooks.before_dropout({which, place, residual, output, &norm});
    output = drop(output, purpose, place.layer, keys);
    if (hooked) output = hooks.after_dropout({which, place, residual, output, &norm});
    return add_norm(output, residual, norm);
  }
};

Tensor Encoder::embed(const EncoderInput& input) const {
  // A padding row gets no gradient: RoBERTa has one in both tables, BERT in that of the words.
  const std::int64_t pad = config_.pad_token_id;
  const std::int64_t position_pad = config_.kind == EncoderKind::roberta ? pad : -1;
  const std::int64_t filling = filled_rows(input.ids.size(0)) - input.ids.size(0);
  const auto looked_up = [&](const char* table, const Tensor& ids, std::int64_t padding) {
    return at::embedding(weights_.at(table), at::constant_pad_nd(ids, {0, filling}), padding);
  };
  const Tensor words = looked_up("embeddings.word_embeddings.weight", input.ids, pad);
  const Tensor types = looked_up("embeddings.token_type_embeddings.weight", input.type_ids, -1);
  return add_norm(
      words + types,
      looked_up("embeddings.position_embeddings.weight", input.position_ids, position_pad),
      embeddings_norm_);
}

Tensor Encoder::run_layer(std::int64_t index, const Tensor& x, const Pass& pass,
                          bool first_tokens) const {
  const Layer& layer = layers_[static_cast<std::size_t>(index)];
  const EncoderInput& input = pass.input;
  const Tensor residual = first_tokens ? x.index_select(0, pass.first_tokens) : x;
  const HookPlace all{index, input.task, pass.trial_rows};
  const HookPlace own{index, input.task, first_tokens ? input.trial_sequences : pass.trial_rows};
  const std::vector<RowKey>& keys = first_tokens ? pass.first_rows : pass.rows;

  Tensor query = layer.query(residual);
  Tensor value = layer.value(x);
  if (pass.hooks.acts_on(Projection::query)) {
    query = pass.hooks.projected({Projection::query, own, residual, query});
  }
  if (pass.hooks.acts_on(Projection::value)) {
    value = pass.hooks.projected({Projection::value, all, x, value});
  }
  const AttentionShape shape{first_tokens ? pass.first_offsets : input.offsets,
                             input.offsets,
                             input.examples,
                             input.trial_sequences,
                             config_.num_heads,
                             index};
  const Tensor seen =
      attention(query, layer.key(x), value, pass.hooks.prefix(index), shape, pass.dropout);
  const Tensor attended =
      pass.close(SubLayer::attention, layer.attention_output(seen), residual, layer.attention_norm,
                 Purpose::attention_output_dropout, own, keys);
  const Tensor inner = activate(layer.intermediate(attended), config_.activation);
  return pass.close(SubLayer::feed_forward, layer.output(inner), attended, layer.output_norm,
                    Purpose::feed_forward_output_dropout, own, keys);
}

Tensor Encoder::forward(const EncoderInput& input, const Hooks& hooks, LastLayer last,
                        const Dropout* dropout, std::vector<Tensor>* hidden_states) const {
  const Pass pass(input, hooks, dropout, dtype());
  Tensor x = pass.drop(embed(input), Purpose::embedding_dropout, 0, pass.rows);
  const auto tokens_of = [&](const Tensor& rows) {
    return rows.size(0) > input.ids.size(0) ? rows.narrow(0, 0, input.ids.size(0)) : rows;
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
