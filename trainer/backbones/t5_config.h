#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/backbones/encoder_config.h"
#include "trainer/backbones/stored_weights.h"

namespace petlab::trainer {

/// Shape and constants of a T5 (1.0 and 1.1), from config.json.
struct T5Config {
  std::int64_t vocab_size = 0;
  std::int64_t d_model = 0;
  std::int64_t d_kv = 0;  // of a head; heads · d_kv need not be d_model
  std::int64_t num_heads = 0;
  std::int64_t d_ff = 0;
  std::int64_t num_layers = 0;          // of the encoder
  std::int64_t num_decoder_layers = 0;  // as many where config.json is silent
  std::int64_t num_buckets = 32;        // relative_attention_num_buckets
  std::int64_t max_distance = 128;      // relative_attention_max_distance
  double dropout = 0.1;                 // dropout_rate
  double layer_norm_eps = 1e-6;         // layer_norm_epsilon
  Activation activation = Activation::relu;
  bool gated = false;  // two inner projections, of which one is the other's gate
  /// The decoder's output is multiplied by d_model^-0.5 before the output projection.
  bool scaled_output = true;
  /// The output projection is the embedding. config.json says it of a new model only (transformers
  /// 5 always saves true); of a checkpoint its weights decide, see read_t5_checkpoint.
  bool tied = true;
  std::int64_t pad_token_id = 0;
  std::int64_t eos_token_id = 1;
  std::int64_t decoder_start_token_id = 0;

  std::int64_t inner() const { return num_heads * d_kv; }
  bool operator==(const T5Config&) const = default;
};

/// Reads `folder/config.json`. Throws Error naming the file and field: no JSON, a missing, mistyped
/// or impossible value, another model_type than t5.
T5Config read_t5_config(const std::filesystem::path& folder);
/// The same from text; `name` stands for the file in messages.
T5Config parse_t5_config(std::string_view text, const std::string& name);

/// Names and shapes of the weights as Hugging Face calls them: `shared.weight` (vocab_size,
/// d_model) … `lm_head.weight` where it is not tied.
std::vector<WantedTensor> t5_tensors(const T5Config& config);

struct T5Checkpoint {
  T5Config config;
  BackboneWeights weights;
};

/// read_t5_config, open_weights and pick_weights with t5_tensors. The output projection is
/// `lm_head.weight` where the checkpoint has one that differs from the embedding, and the embedding
/// otherwise, as in transformers 5, whatever `tie_word_embeddings` says. Copies of the embedding
/// and a table of positions for cross-attention, which older files hold, are ignored.
T5Checkpoint read_t5_checkpoint(const std::filesystem::path& folder);

/// The row of relative_attention_bias for a key so far behind its query (negative: before it).
/// `both_ways`: an encoder's, else a decoder's, for which all that is behind is row 0.
std::int64_t relative_bucket(std::int64_t distance, bool both_ways, std::int64_t num_buckets,
                             std::int64_t max_distance);

}  // namespace petlab::trainer
