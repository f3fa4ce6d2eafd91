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
  std::int64_t d_kv = 0;  // per head; heads · d_kv may differ from d_model
  std::int64_t num_heads = 0;
  std::int64_t d_ff = 0;
  std::int64_t num_layers = 0;          // of the encoder
  std::int64_t num_decoder_layers = 0;  // default: as many as num_layers
  std::int64_t num_buckets = 32;        // relative_attention_num_buckets
  std::int64_t max_distance = 128;      // relative_attention_max_distance
  double dropout = 0.1;                 // dropout_rate
  double layer_norm_eps = 1e-6;         // layer_norm_epsilon
  Activation activation = Activation::relu;
  bool gated = false;  // two inner projections, one of which gates the other
  /// The decoder's output is multiplied by d_model^-0.5 before the output projection.
  bool scaled_output = true;
  /// The output projection is the embedding. config.json decides this only for a new model
  /// (transformers 5 always saves true). For a checkpoint, its weights decide; see
  /// read_t5_checkpoint.
  bool tied = true;
  std::int64_t pad_token_id = 0;
  std::int64_t eos_token_id = 1;
  std::int64_t decoder_start_token_id = 0;

  std::int64_t inner() const { return num_heads * d_kv; }
  bool operator==(const T5Config&) const = default;
};

/// Reads `folder/config.json`. Throws Error, naming the file and field, for invalid JSON, a
/// missing, mistyped or impossible value, or a model_type other than t5.
T5Config read_t5_config(const std::filesystem::path& folder);
/// The same from text; `name` replaces the file in messages.
T5Config parse_t5_config(std::string_view text, const std::string& name);

/// The names and shapes of the weights in Hugging Face's naming: `shared.weight` (vocab_size,
/// d_model) … `lm_head.weight` unless it is tied.
std::vector<WantedTensor> t5_tensors(const T5Config& config);

struct T5Checkpoint {
  T5Config config;
  BackboneWeights weights;
};

/// Calls read_t5_config, open_weights and pick_weights with t5_tensors. As in transformers 5,
/// regardless of `tie_word_embeddings`, the output projection is `lm_head.weight` if the checkpoint
/// has one that differs from the embedding, and otherwise the embedding. The embedding may be
/// stored only as the encoder's or decoder's `embed_tokens.weight` or as `lm_head.weight`. Copies
/// of it are ignored, as is the position table for cross-attention in older files. Also throws
/// Error if encoder and decoder have different embeddings.
T5Checkpoint read_t5_checkpoint(const std::filesystem::path& folder);

/// The row of relative_attention_bias for a key `distance` after its query (negative: before it).
/// `both_ways` is true for encoders. For decoders, all later keys use row 0.
std::int64_t relative_bucket(std::int64_t distance, bool both_ways, std::int64_t num_buckets,
                             std::int64_t max_distance);

}  // namespace petlab::trainer
