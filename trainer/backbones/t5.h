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

/// A T5 on packed batches: an encoder of sources, and a decoder of targets that sees them.
class T5 final : public Backbone {
 public:
  /// Reads a Hugging Face folder (weights as Encoder::load). Throws Error as
  /// read_t5_checkpoint.
  static T5 load(const std::filesystem::path& folder, const Placement& placement = {});
  /// `weights` by the names of t5_tensors, where and as `placement` says.
  T5(T5Config config, Weights weights, const Placement& placement = {});

  const T5Config& config() const { return config_; }
  sweeps::BackboneShape shape() const override;
  /// Those of the encoder come first, then the decoder's.
  std::vector<Carrier> carriers(Site site) const override;
  const Placement& placement() const override { return placement_; }
  DropoutRates dropout_rates() const override { return {config_.dropout, config_.dropout}; }
  /// Positions are relative: there is no bound.
  std::int64_t max_tokens() const override;
  const Weights& weights() const override { return weights_; }
  bool is_decayed(std::string_view weight) const override;
  std::unique_ptr<Backbone> with_weights(Weights weights) const override;

  /// The encoder's states after its last norm, (tokens, d_model). Where `hidden_states` is given it
  /// gets (tokens, d_model) of the embeddings and of each layer, the last one normalised.
  Tensor encode_sources(const PackedSequences& sources, const Hooks& hooks, const Dropout* dropout,
                        std::vector<Tensor>* hidden_states = nullptr) const;
  Tensor encode(const EncoderInput& input, const Hooks& hooks, LastLayer last,
                const Dropout* dropout) const override;
  /// The decoder's states after its last norm, (target tokens, d_model). `targets` holds what the
  /// decoder reads, the start token first; its sequences are those of `sources` one by one, whose
  /// encoded states `encoded` holds. `hidden_states` as above.
  Tensor decode(const PackedSequences& targets, const PackedSequences& sources,
                const Tensor& encoded, const Hooks& hooks, const Dropout* dropout,
                std::vector<Tensor>* hidden_states = nullptr) const;
  /// decoded (rows, d_model) to (rows, vocab_size).
  Tensor logits(const Tensor& decoded) const;
  /// smoothed_losses of those logits, which are never held all at once: decoded and targets (rows)
  /// to (rows).
  Tensor smoothed_losses(const Tensor& decoded, const Tensor& targets, double smoothing) const;

 private:
  /// What the output projection reads.
  Tensor scaled_output(const Tensor& decoded) const;

  friend class T5Decoder;  // the same layers, token by token

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
    std::int64_t first_layer = 0;  // number of its first layer among both stacks'
    Tensor position_table;         // (num_buckets, heads)
    std::vector<Layer> layers;
    RmsNorm final_norm;
  };
  /// What a decoder's layers see beside its own tokens.
  struct Sources {
    const PackedSequences& sequences;
    PackedRows rows;
    Tensor states;                                           // (rows, d_model), filled up
    std::optional<AttentionBuckets> buckets = std::nullopt;  // on a device that is no CPU
  };

  Stack stack_of(bool decoder) const;
  /// Where a stack has dropout: of its states, and between the projections of its feed-forwards.
  static std::vector<DrawnPlaces> dropout_places(const Stack& stack);
  /// (heads, 2 · longest - 1), of the longest sequence.
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
