#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string_view>
#include <vector>

#include "trainer/backbones/backbone.h"
#include "trainer/backbones/blocks.h"
#include "trainer/backbones/encoder_config.h"
#include "trainer/compute/torch.h"

namespace petlab::trainer {

/// A BERT or RoBERTa encoder on packed batches.
class Encoder final : public Backbone {
 public:
  /// Reads a Hugging Face folder. On a CPU that computes in float32, float32 tensors are views of
  /// the memory-mapped checkpoint, without copies. Throws Error as open_weights and pick_weights.
  static Encoder load(const std::filesystem::path& folder, const Placement& placement = {});
  /// `weights` have the names of encoder_tensors. `placement` sets their device and type.
  Encoder(EncoderConfig config, Weights weights, const Placement& placement = {});

  const EncoderConfig& config() const { return config_; }
  sweeps::BackboneShape shape() const override;
  std::vector<Carrier> carriers(Site site) const override;
  const Placement& placement() const override { return placement_; }
  DropoutRates dropout_rates() const override {
    return {config_.hidden_dropout, config_.attention_dropout};
  }
  std::int64_t max_tokens() const override { return config_.max_tokens(); }
  const Weights& weights() const override { return weights_; }
  bool is_decayed(std::string_view weight) const override;
  std::unique_ptr<Backbone> with_weights(Weights weights) const override;

  Tensor encode(const EncoderInput& input, const Hooks& hooks, LastLayer last,
                const Dropout* dropout = nullptr,
                std::vector<Tensor>* hidden_states = nullptr) const override;
  std::vector<std::int64_t> positions(std::span<const std::int64_t> ids) const override;

 private:
  struct Layer {
    AttentionBlock attention;
    LayerNorm attention_norm;
    FeedForwardBlock feed_forward;
    LayerNorm output_norm;
  };
  /// The sequences of a pass and the rows of its activations.
  struct Rows;

  Tensor embed(const EncoderInput& input) const;
  Tensor run_layer(std::int64_t index, const Tensor& x, const Pass& pass, const Rows& rows,
                   bool first_tokens) const;

  EncoderConfig config_;
  Weights weights_;
  Placement placement_;
  LayerNorm embeddings_norm_;
  std::vector<Layer> layers_;
};

}  // namespace petlab::trainer
