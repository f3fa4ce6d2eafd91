#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/backbones/encoder_config.h"
#include "trainer/backbones/hooks.h"
#include "trainer/compute/dropout.h"
#include "trainer/compute/torch.h"
#include "trainer/data/packed_sequences.h"

namespace petlab::trainer {

/// What forward computes of the last layer.
enum class LastLayer {
  all_tokens,    // (tokens, d_model)
  first_tokens,  // (sequences, d_model): what a head on the first token needs, at less cost
};

/// A BERT or RoBERTa encoder on packed batches. Immutable, usable by several trials one after the
/// other; frozen unless made by trainable_copy. Weights are (out, in) as in the checkpoint.
class Encoder {
 public:
  using Weights = std::map<std::string, Tensor, std::less<>>;

  /// Reads a Hugging Face folder; weights in `dtype` (kFloat: float32 tensors are views into the
  /// memory-mapped checkpoint, nothing is copied). Throws Error as open_checkpoint and
  /// pick_weights.
  static Encoder load(const std::filesystem::path& folder, at::ScalarType dtype = at::kFloat);
  /// `weights` by the names of encoder_tensors.
  Encoder(EncoderConfig config, Weights weights);

  const EncoderConfig& config() const { return config_; }
  const Weights& weights() const { return weights_; }
  at::ScalarType dtype() const { return embeddings_norm_.weight.scalar_type(); }
  /// The same encoder with weights of its own that require gradients.
  Encoder trainable_copy() const;

  /// The last layer's output. `dropout` is nullptr outside training. Where `hidden_states` is given
  /// it gets (tokens, d_model) of the embeddings and of each layer (the last as `last` says).
  Tensor forward(const EncoderInput& input, const Hooks& hooks, LastLayer last,
                 const Dropout* dropout = nullptr,
                 std::vector<Tensor>* hidden_states = nullptr) const;

 private:
  struct Linear {
    Tensor weight;
    Tensor bias;
    Tensor operator()(const Tensor& x) const;
  };
  struct Layer {
    Linear query, key, value, attention_output, intermediate, output;
    LayerNorm attention_norm, output_norm;
  };
  struct Pass;

  Tensor embed(const EncoderInput& input) const;
  Tensor run_layer(std::int64_t index, const Tensor& x, const Pass& pass, bool first_tokens) const;

  EncoderConfig config_;
  Weights weights_;
  LayerNorm embeddings_norm_;
  std::vector<Layer> layers_;
};

}  // namespace petlab::trainer
