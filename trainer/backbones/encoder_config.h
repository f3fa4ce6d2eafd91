#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/backbones/stored_weights.h"

namespace petlab::trainer {

enum class EncoderKind { bert, roberta };
/// gelu is the erf form, gelu_tanh the approximation ("gelu_new").
enum class Activation { gelu, gelu_tanh, relu };

/// Shape and constants of a BERT or RoBERTa encoder, from config.json.
struct EncoderConfig {
  EncoderKind kind = EncoderKind::bert;
  std::int64_t vocab_size = 0;
  std::int64_t d_model = 0;        // hidden_size
  std::int64_t num_layers = 0;     // num_hidden_layers
  std::int64_t num_heads = 0;      // num_attention_heads; divides d_model
  std::int64_t d_ff = 0;           // intermediate_size
  std::int64_t max_positions = 0;  // max_position_embeddings: rows of the position table
  std::int64_t token_types = 2;    // type_vocab_size
  std::int64_t pad_token_id = 0;
  double layer_norm_eps = 1e-12;
  double hidden_dropout = 0.1;     // hidden_dropout_prob
  double attention_dropout = 0.1;  // attention_probs_dropout_prob
  Activation activation = Activation::gelu;

  /// Position id of a sequence's first token: RoBERTa pad_token_id + 1, BERT 0.
  std::int64_t first_position() const;
  /// Maximum number of tokens in a sequence, special ones included: 512 for roberta-base.
  std::int64_t max_tokens() const { return max_positions - first_position(); }
  /// The number of parameters, counted as in the paper's %BLS: embeddings, layers and pooler
  /// (124,645,632 for roberta-base).
  std::int64_t parameters() const;
  bool operator==(const EncoderConfig&) const = default;
};

/// Reads `folder/config.json`. Throws Error, naming the file and field, for invalid JSON, a
/// missing, mistyped or impossible value, a model_type other than bert and roberta, or relative
/// positions.
EncoderConfig read_encoder_config(const std::filesystem::path& folder);
/// The same from text; `name` replaces the file in messages.
EncoderConfig parse_encoder_config(std::string_view text, const std::string& name);

/// The names and shapes of the encoder's weights in Hugging Face's naming, without prefix:
/// `embeddings.word_embeddings.weight` (vocab_size, d_model) … `encoder.layer.0.output.dense.bias`.
std::vector<WantedTensor> encoder_tensors(const EncoderConfig& config);

/// Calls open_weights and pick_weights with encoder_tensors. Strips the prefixes `roberta.` and
/// `bert.`, and ignores `pooler.`, `cls.`, `lm_head.`, `classifier.`, `qa_outputs.` and the
/// embeddings' index buffers.
BackboneWeights load_encoder_weights(const std::filesystem::path& folder,
                                     const EncoderConfig& config);

}  // namespace petlab::trainer
