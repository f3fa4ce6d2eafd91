#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "trainer/backbones/backbone.h"
#include "trainer/backbones/blocks.h"
#include "trainer/backbones/modernbert_config.h"
#include "trainer/compute/torch.h"

namespace petlab::trainer {

/// A ModernBERT encoder on packed batches: rotary positions, global and local attention, gated
/// feed-forward, and a norm before each sub-layer.
class ModernBert final : public Backbone {
 public:
  /// Reads a Hugging Face folder, as Encoder::load does.
  static ModernBert load(const std::filesystem::path& folder, const Placement& placement = {});
  /// `weights` have the names of modernbert_tensors. `placement` sets their device and type.
  ModernBert(ModernBertConfig config, Weights weights, const Placement& placement = {});
  /// Draws the weights of an untrained model, initialised as in Hugging Face, but without cutting
  /// the distribution off: matrices and embeddings N(0, deviation), output projections N(0,
  /// deviation / sqrt(2 layers)); biases are 0, norms 1.
  static Weights random_weights(const ModernBertConfig& config, double deviation,
                                std::uint64_t seed);

  const ModernBertConfig& config() const { return config_; }
  sweeps::BackboneShape shape() const override;
  std::vector<Carrier> carriers(Site site) const override;
  const Placement& placement() const override { return placement_; }
  DropoutRates dropout_rates() const override { return {config_.dropout, config_.dropout}; }
  std::int64_t max_tokens() const override { return config_.max_tokens; }
  const Weights& weights() const override { return weights_; }
  bool is_decayed(std::string_view weight) const override;
  std::unique_ptr<Backbone> with_weights(Weights weights) const override;
  /// As Backbone's; the last of `hidden_states` is after the final norm. Throws
  /// std::invalid_argument for positions with gaps: windows would count only the tokens there are.
  Tensor encode(const EncoderInput& input, const Hooks& hooks, LastLayer last,
                const Dropout* dropout = nullptr,
                std::vector<Tensor>* hidden_states = nullptr) const override;

 private:
  struct Layer {
    std::optional<LayerNorm> attention_norm;  // the first layer reads the embeddings' norm
    AttentionBlock attention;
    LayerNorm feed_forward_norm;
    FeedForwardBlock feed_forward;
  };
  /// The sequences of a pass and the rows of its activations.
  struct Rows;

  Tensor run_layer(std::int64_t index, const Tensor& x, const Pass& pass, const Rows& rows,
                   bool first_tokens) const;

  ModernBertConfig config_;
  Weights weights_;
  Placement placement_;
  LayerNorm embeddings_norm_, final_norm_;
  std::vector<Layer> layers_;
};

}  // namespace petlab::trainer
