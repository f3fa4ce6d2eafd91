#include "trainer/backbones/encoder_config.h"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "trainer/backbones/config_fields.h"
#include "trainer/files/error.h"
#include "trainer/files/file_bytes.h"
#include "trainer/files/shallow_json.h"

namespace petlab::trainer {
namespace {

using Json = nlohmann::json;
using Fields = ConfigFields;

Activation read_activation(const Fields& fields) {
  const std::string name = fields.text("hidden_act", "gelu");
  if (name == "gelu") return Activation::gelu;
  if (name == "gelu_new" || name == "gelu_pytorch_tanh") return Activation::gelu_tanh;
  if (name == "relu") return Activation::relu;
  fields.refuse("hidden_act",
                fmt::format("is \"{}\", must be gelu, gelu_new, gelu_pytorch_tanh or relu", name));
}

}  // namespace

std::int64_t EncoderConfig::first_position() const {
  return kind == EncoderKind::roberta ? pad_token_id + 1 : 0;
}

std::int64_t EncoderConfig::parameters() const {
  std::int64_t count = d_model * d_model + d_model;  // pooler
  for (const WantedTensor& tensor : encoder_tensors(*this)) count += elements(tensor.shape);
  return count;
}

EncoderConfig parse_encoder_config(std::string_view text, const std::string& name) {
  const Json json = parse_shallow_json(text, name);
  if (!json.is_object()) {
    throw Error(fmt::format("{}: is a JSON {}, expected an object", name, json.type_name()));
  }
  const Fields fields(json, name);
  EncoderConfig config;
  const std::string type = fields.text("model_type", "");
  if (type == "roberta") {
    config.kind = EncoderKind::roberta;
  } else if (type != "bert") {
    fields.refuse("model_type", type.empty()
                                    ? "is missing, must be bert or roberta"
                                    : fmt::format("is \"{}\", must be bert or roberta", type));
  }
  const bool roberta = config.kind == EncoderKind::roberta;
  config.vocab_size = fields.whole("vocab_size", 1, kMostRows);
  config.d_model = fields.whole("hidden_size", 1, kMostWidth);
  config.num_layers = fields.whole("num_hidden_layers", 1, kMostLayers);
  config.num_heads = fields.whole("num_attention_heads", 1, kMostWidth);
  config.d_ff = fields.whole("intermediate_size", 1, kMostWidth);
  config.max_positions = fields.whole("max_position_embeddings", 1, kMostRows);
  // Hugging Face's defaults for missing fields.
  config.token_types = fields.whole("type_vocab_size", 1, kMostRows, 2);
  config.pad_token_id = fields.whole("pad_token_id", 0, config.vocab_size - 1, roberta ? 1 : 0);
  config.layer_norm_eps = fields.number("layer_norm_eps", 0, 1, 1e-12);
  config.hidden_dropout = fields.number("hidden_dropout_prob", 0, 1, 0.1);
  config.attention_dropout = fields.number("attention_probs_dropout_prob", 0, 1, 0.1);
  config.activation = read_activation(fields);
  if (config.d_model % config.num_heads != 0) {
    fields.refuse("hidden_size", fmt::format("is {}, must be a multiple of num_attention_heads, {}",
                                             config.d_model, config.num_heads));
  }
  if (config.max_tokens() < 1) {
    fields.refuse("max_position_embeddings",
                  fmt::format("is {}, must be more than {}, the first token's position",
                              config.max_positions, config.first_position()));
  }
  const std::string positions = fields.text("position_embedding_type", "absolute");
  if (positions != "absolute") {
    fields.refuse("position_embedding_type", fmt::format("is \"{}\", must be absolute", positions));
  }
  if (fields.flag("is_decoder", false)) fields.refuse("is_decoder", "is true, must be false");
  return config;
}

EncoderConfig read_encoder_config(const std::filesystem::path& folder) {
  const auto file = FileBytes::map(folder / "config.json");
  const auto bytes = file->bytes();
  return parse_encoder_config({reinterpret_cast<const char*>(bytes.data()), bytes.size()},
                              file->name());
}

std::vector<WantedTensor> encoder_tensors(const EncoderConfig& config) {
  const std::int64_t d = config.d_model;
  std::vector<WantedTensor> wanted{
      {"embeddings.word_embeddings.weight", {config.vocab_size, d}},
      {"embeddings.position_embeddings.weight", {config.max_positions, d}},
      {"embeddings.token_type_embeddings.weight", {config.token_types, d}},
      {"embeddings.LayerNorm.weight", {d}},
      {"embeddings.LayerNorm.bias", {d}},
  };
  const auto linear = [&](const std::string& name, std::int64_t out, std::int64_t in) {
    wanted.push_back({name + ".weight", {out, in}});
    wanted.push_back({name + ".bias", {out}});
  };
  const auto norm = [&](const std::string& name) {
    wanted.push_back({name + ".weight", {d}});
    wanted.push_back({name + ".bias", {d}});
  };
  for (std::int64_t layer = 0; layer < config.num_layers; ++layer) {
    const std::string at = fmt::format("encoder.layer.{}.", layer);
    linear(at + "attention.self.query", d, d);
    linear(at + "attention.self.key", d, d);
    linear(at + "attention.self.value", d, d);
    linear(at + "attention.output.dense", d, d);
    norm(at + "attention.output.LayerNorm");
    linear(at + "intermediate.dense", config.d_ff, d);
    linear(at + "output.dense", d, config.d_ff);
    norm(at + "output.LayerNorm");
  }
  return wanted;
}

BackboneWeights load_encoder_weights(const std::filesystem::path& folder,
                                     const EncoderConfig& config) {
  static constexpr std::array<std::string_view, 2> kPrefixes{"roberta.", "bert."};
  static constexpr std::array<std::string_view, 7> kIgnored{"pooler.",
                                                            "cls.",
                                                            "lm_head.",
                                                            "classifier.",
                                                            "qa_outputs.",
                                                            "embeddings.position_ids",
                                                            "embeddings.token_type_ids"};
  return pick_weights(open_weights(folder), encoder_tensors(config), kPrefixes, kIgnored);
}

}  // namespace petlab::trainer
