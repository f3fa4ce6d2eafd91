#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>

#include "trainer/backbones/backbone.h"

namespace petlab::trainer {

/// A field of config.json with the id of a token.
struct SpecialToken {
  const char* field;
  std::int64_t id;
};

enum class VocabularyKind { sentencepiece, wordpiece, byte_bpe };

using DrawWeights = std::function<Backbone::Weights(std::uint64_t seed)>;

/// A row for each model type: how its checkpoints are loaded, and how `petlab-trainer init` creates
/// new ones. sweeps/backbone.cpp reads its shape, and trainer/check.cpp checks its files.
struct BackboneKind {
  std::string_view model_type;
  /// Reads a Hugging Face folder. Throws Error as the class's own load().
  std::unique_ptr<const Backbone> (*load)(const std::filesystem::path&, const Placement&);
  VocabularyKind vocabulary;
  std::span<const SpecialToken> special_tokens;  // of `vocabulary`
  /// Returns a function that draws an untrained model's weights as Hugging Face does. Throws Error
  /// with the name of the file and the field if the configuration is invalid.
  DrawWeights (*new_weights)(const nlohmann::ordered_json& config, const std::string& name);
};

/// Returns nullptr for an unknown type; sweeps::known_model_types() lists the known ones.
const BackboneKind* find_backbone_kind(std::string_view model_type);

/// Loads a folder with the model type of its config.json.
std::unique_ptr<const Backbone> load_backbone(const std::filesystem::path& folder,
                                              const Placement& placement = {});

}  // namespace petlab::trainer
