#include "trainer/backbones/backbone_kinds.h"

#include <array>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

#include "trainer/backbones/encoder.h"
#include "trainer/backbones/modernbert.h"
#include "trainer/backbones/random_weights.h"
#include "trainer/backbones/t5.h"
#include "trainer/files/error.h"

namespace petlab::trainer {
namespace {

using nlohmann::ordered_json;

template <typename Kind>
std::unique_ptr<const Backbone> load_as(const std::filesystem::path& folder,
                                        const Placement& placement) {
  return std::make_unique<Kind>(Kind::load(folder, placement));
}

/// Returns the field, or `otherwise`, Hugging Face's default, if it is missing. Throws Error unless
/// it is > 0.
double positive_number(const ordered_json& config, const std::string& name, const char* field,
                       double otherwise) {
  const auto found = config.find(field);
  if (found == config.end()) return otherwise;
  if (!found->is_number() || !(found->get<double>() > 0)) {
    throw Error(name + ": " + field + ": is " + found->dump() + ", must be a number > 0");
  }
  return found->get<double>();
}

template <auto parse, auto draw>
DrawWeights new_encoder_weights(const ordered_json& config, const std::string& name) {
  const double deviation = positive_number(config, name, "initializer_range", 0.02);
  return [sizes = parse(config.dump(), name), deviation](std::uint64_t seed) {
    return draw(sizes, deviation, seed);
  };
}
constexpr auto kNewEncoderWeights =
    new_encoder_weights<parse_encoder_config, random_encoder_weights>;

DrawWeights new_t5_weights(const ordered_json& config, const std::string& name) {
  const double factor = positive_number(config, name, "initializer_factor", 1.0);
  return [sizes = parse_t5_config(config.dump(), name), factor](std::uint64_t seed) {
    return random_t5_weights(sizes, factor, seed);
  };
}

constexpr std::array kBertTokens{SpecialToken{"pad_token_id", 0}};
constexpr std::array kRobertaTokens{SpecialToken{"bos_token_id", 0},
                                    SpecialToken{"pad_token_id", 1},
                                    SpecialToken{"eos_token_id", 2}};
constexpr std::array kModernBertTokens{
    SpecialToken{"bos_token_id", 0}, SpecialToken{"cls_token_id", 0},
    SpecialToken{"eos_token_id", 2}, SpecialToken{"sep_token_id", 2},
    SpecialToken{"pad_token_id", 1}};

constexpr std::array kBackboneKinds{
    BackboneKind{"bert", load_as<Encoder>, VocabularyKind::wordpiece, kBertTokens,
                 kNewEncoderWeights},
    BackboneKind{"roberta", load_as<Encoder>, VocabularyKind::byte_bpe, kRobertaTokens,
                 kNewEncoderWeights},
    BackboneKind{"t5", load_as<T5>, VocabularyKind::sentencepiece, {}, new_t5_weights},
    BackboneKind{"modernbert", load_as<ModernBert>, VocabularyKind::byte_bpe, kModernBertTokens,
                 new_encoder_weights<parse_modernbert_config, ModernBert::random_weights>}};

}  // namespace

const BackboneKind* find_backbone_kind(std::string_view model_type) {
  for (const BackboneKind& kind : kBackboneKinds) {
    if (kind.model_type == model_type) return &kind;
  }
  return nullptr;
}

std::unique_ptr<const Backbone> load_backbone(const std::filesystem::path& folder,
                                              const Placement& placement) {
  const std::string type = sweeps::read_backbone_shape(folder).model_type;
  const BackboneKind* const kind = find_backbone_kind(type);
  if (kind == nullptr) {
    throw std::logic_error("model_type " + type + " has a shape, but no backbone");
  }
  return kind->load(folder, placement);
}

}  // namespace petlab::trainer
