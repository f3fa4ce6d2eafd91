#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

#include "metrics/storage.h"
#include "sweeps/trial_config.h"

namespace petlab::sweeps {

/// The shape of a pretrained transformer, from its Hugging Face `config.json`.
struct BackboneShape {
  std::string model_type;  // one of known_model_types()
  std::int64_t d_model = 0;
  std::int64_t encoder_layers = 0;
  std::int64_t decoder_layers = 0;  // 0: encoder only
  std::int64_t heads = 0;
  std::int64_t d_head = 0;  // d_model / heads, except for some T5
  std::int64_t d_ff = 0;
  std::int64_t vocab_size = 0;
  std::int64_t max_positions = 0;  // rows of the position table (ModernBERT has none); 0: no limit
  std::int64_t type_vocab_size = 0;
  std::int64_t relative_buckets = 0;  // T5
  bool gated_ff = false;              // T5 1.1, ModernBERT: two input projections
  bool tied_embeddings = true;        // output projection shared with the embedding (T5)
  // ModernBERT: whether these have biases.
  bool biased_attention = false;
  bool biased_ff = false;
  bool biased_norms = false;
  /// Of a backbone that only a worker knows: the whole numbers at the top level of its config.json,
  /// by name. All sizes above are 0.
  std::map<std::string, std::int64_t> numbers;

  /// L, the number of layers with a module.
  std::int64_t layers() const { return encoder_layers + decoder_layers; }
  /// Weights of the fully fine-tuned backbone, as counted in the paper (RoBERTa-base 124,645,632:
  /// embeddings, layers and pooler; T5-base 222,903,552).
  std::int64_t parameters() const;
  bool operator==(const BackboneShape&) const = default;
};

/// The model types with a shape, as in "a, b or c".
std::string known_model_types();

/// Reads `folder/config.json`. Throws sweeps::Error naming the file, what was found and expected
/// (missing folder or file, invalid JSON, unknown model_type, a size that is missing or not
/// positive).
BackboneShape read_backbone_shape(const std::filesystem::path& folder);
/// Reads only model_type and numbers. Throws sweeps::Error if there is no such file, or it is no
/// JSON object.
BackboneShape read_backbone_numbers(const std::filesystem::path& folder);
/// The `model_type` in `folder/config.json`; empty if it has none. Throws sweeps::Error if there is
/// no such file, or it is no JSON object.
std::string read_model_type(const std::filesystem::path& folder);

/// The value of a field with whole numbers, or 0 or 1 for a switch.
std::int64_t size_of(const TrialConfig& config, std::string_view field);
/// The number of layers with a module of the configuration's kind.
std::int64_t module_layers(const TrialConfig& config, const BackboneShape& shape);
/// The input of the storage formulas for a trial; its kind must have a formula.
metrics::ModuleStorage module_storage(const TrialConfig& config, const BackboneShape& shape);

}  // namespace petlab::sweeps
