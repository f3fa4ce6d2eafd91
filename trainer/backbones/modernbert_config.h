#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/backbones/stored_weights.h"

namespace petlab::trainer {

/// Shape and constants of a ModernBERT encoder (Warner et al., "Smarter, better, faster, longer",
/// 2024), from config.json.
struct ModernBertConfig {
  std::int64_t vocab_size = 0;
  std::int64_t d_model = 0;     // hidden_size
  std::int64_t num_heads = 0;   // num_attention_heads; d_model / num_heads is even
  std::int64_t d_ff = 0;        // intermediate_size, of each of the two inner projections
  std::int64_t max_tokens = 0;  // max_position_embeddings
  std::int64_t pad_token_id = 50283;
  /// One for each layer: whether its tokens see only those at most `window` away.
  std::vector<bool> local;
  std::int64_t window = 64;  // local_attention / 2
  double global_theta = 160'000;
  double local_theta = 10'000;
  double norm_eps = 1e-5;
  double dropout = 0;  // embedding_dropout, attention_dropout, mlp_dropout and classifier_dropout
  bool biased_attention = false;
  bool biased_feed_forward = false;
  bool biased_norms = false;

  std::int64_t num_layers() const { return static_cast<std::int64_t>(local.size()); }
  bool operator==(const ModernBertConfig&) const = default;
};

/// Reads `folder/config.json`, in the form of transformers 4 (global_attn_every_n_layers,
/// global_rope_theta) or 5 (layer_types, rope_parameters). Throws Error, naming the file and field,
/// for invalid JSON, a missing, mistyped or impossible value, and what petlab's ModernBERT lacks:
/// other activations, rotary scaling, dropout rates that differ.
ModernBertConfig read_modernbert_config(const std::filesystem::path& folder);
/// The same from text; `name` replaces the file in messages.
ModernBertConfig parse_modernbert_config(std::string_view text, const std::string& name);

/// The names and shapes of the weights in Hugging Face's naming, without prefix:
/// `embeddings.tok_embeddings.weight` (vocab_size, d_model) … `final_norm.weight`.
std::vector<WantedTensor> modernbert_tensors(const ModernBertConfig& config);

/// Calls open_weights and pick_weights with modernbert_tensors. Strips the prefix `model.`, and
/// ignores `head.`, `decoder.` and `classifier.`.
BackboneWeights load_modernbert_weights(const std::filesystem::path& folder,
                                        const ModernBertConfig& config);

}  // namespace petlab::trainer
