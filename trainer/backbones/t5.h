#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "trainer/backbones/attention_buckets.h"
#include "trainer/backbones/backbone.h"
#include "trainer/backbones/blocks.h"
#include "trainer/backbones/t5_config.h"
#include "trainer/compute/rms_norm.h"
#include "trainer/compute/torch.h"

namespace petlab::trainer {

/// A T5 on packed batches: an encoder of sources, and a decoder of targets that attends to them.
class T5 final : public Backbone {
 public:
  /// Reads a Hugging Face folder (weights as in Encoder::load). Throws Error as read_t5_checkpoint.
  static T5 load(const std::filesystem::path& folder, const Placement& placement = {});
  /// `weights` have the names of t5_tensors. `placement` sets their device and type.
  T5(T5Config config, Weights weights, const Placement& placement = {});

  const T5Config& config() const { return config_; }
  sweeps::BackboneShape shape() const override;
  /// The encoder's carriers come first, then the decoder's.
  std::vector<Carrier> carriers(Site site) const override;
  const Placement& placement() const override { return placement_; }
  DropoutRates dropout_rates() const override { return {config_.dropout, config_.dropout}; }
  /// Unlimited: positions are relative.
  std::int64_t max_tokens() const override;
  const Weights& weights() const override { return weights_; }
  bool is_decayed(std::string_view weight) const override;
  std::unique_ptr<Backbone> with_weights(Weights weights) const override;

  /// Returns the encoder's states after its last norm, (tokens, d_model). If `hidden_states` is
  /// given, it receives (tokens, d_model) of the embeddings and of each layer, the last one
  /// normalised.
  Tensor encode_sources(const PackedSequences& sources, const Hooks& hooks, const Dropout* dropout,
                        std::vector<Tensor>* hidden_states = nullptr) const;
  Tensor encode(const EncoderInput& input, const Hooks& hooks, LastLayer last,
                const Dropout* dropout = nullptr,
                std::vector<Tensor>* hidden_states = nullptr) const override;
  /// Returns the decoder's states after its last norm, (target tokens, d_model). `targets` holds
  /// the decoder's inputs, which begin with the start token, one sequence for each of `sources`.
  /// `encoded` holds the encoded states of `sources`. `hidden_states` as above.
  Tensor decode(const PackedSequences& targets, const PackedSequences& sources,
                const Tensor& encoded, const Hooks& hooks, const Dropout* dropout,
                std::vector<Tensor>* hidden_states = nullptr) const;
  /// Maps decoded (rows, d_model) to (rows, vocab_size).
  Tensor logits(const Tensor& decoded) const;
  /// Returns smoothed_losses of those logits, without ever holding all of them: decoded and targets
  /// (rows) to (rows).
  Tensor smoothed_losses(const Tensor& decoded, const Tensor& targets, double smoothing) const;

 private:
  /// The input of the output projection.
  Tensor scaled_output(const Tensor& decoded) const;

  friend class T5Decoder;  // runs the same layers token by token

  struct Layer {
    AttentionBlock attention;
    RmsNorm attention_norm;
    std::optional<AttentionBlock> cross;
    RmsNorm cross_norm;
    FeedForwardBlock feed_forward;
    RmsNorm feed_forward_norm;
  };
  struct Stack {
    bool decoder = false;
    std::int64_t first_layer = 0;  // index of its first layer, counted over both stacks
    Tensor position_table;         // (num_buckets, heads)
    std::vector<Layer> layers;
    RmsNorm final_norm;
  };
  /// The encoded sources that a decoder's layers attend to.
  struct Sources {
    const PackedSequences& sequences;
    PackedRows rows;
    Tensor states;                                           // (rows, d_model), with filling rows
    std::optional<AttentionBuckets> buckets = std::nullopt;  // only on a GPU
  };

  Stack stack_of(bool decoder);
  /// The dropouts of a stack: on its states, and inside its feed-forward blocks.
  static std::vector<DrawnPlaces> dropout_places(const Stack& stack);
  /// (heads, 2 · longest - 1), for the longest sequence.
  Tensor position_bias(const Stack& stack, const PackedSequences& sequences) const;
  Tensor run_layer(const Stack& stack, std::size_t index, Tensor x, const Pass& pass,
                   const AttentionShape& shape, const PackedRows& rows,
                   const Sources* sources) const;
  Tensor run(const Stack& stack, const PackedSequences& sequences, const Sources* sources,
             const Pass& pass, std::vector<Tensor>* hidden_states) const;

  T5Config config_;
  Weights weights_;
  Placement placement_;
  Stack encoder_, decoder_;
  ProductWeight output_weight_;
};

}  // namespace petlab::trainer
