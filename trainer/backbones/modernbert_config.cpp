#include "trainer/backbones/modernbert_config.h"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>

#include "trainer/backbones/config_fields.h"
#include "trainer/files/error.h"
#include "trainer/files/file_bytes.h"
#include "trainer/files/shallow_json.h"

namespace petlab::trainer {
namespace {

using Json = nlohmann::json;

constexpr double kMostTheta = 1e12;

bool is_given(const Json& all, const char* field) {
  const auto found = all.find(field);
  return found != all.end() && !found->is_null();
}

/// Whether each layer is local. transformers 5 lists the layers, 4 counts them.
std::vector<bool> read_layers(const Json& all, const ConfigFields& fields) {
  const std::int64_t layers = fields.whole("num_hidden_layers", 1, kMostLayers);
  const std::int64_t every = fields.whole("global_attn_every_n_layers", 1, kMostLayers, 3);
  std::vector<bool> local;
  for (std::int64_t l = 0; l < layers; ++l) local.push_back(l % every != 0);
  if (!is_given(all, "layer_types")) return local;
  const Json& types = all["layer_types"];
  if (!types.is_array() || std::ssize(types) != layers) {
    fields.refuse("layer_types", fmt::format("must be a list of {} types, as num_hidden_layers "
                                             "says",
                                             layers));
  }
  for (std::size_t l = 0; l < types.size(); ++l) {
    if (types[l] != "full_attention" && types[l] != "sliding_attention") {
      fields.refuse("layer_types", fmt::format("has {} for layer {}, must be full_attention or "
                                               "sliding_attention",
                                               types[l].dump(-1, ' ', true).substr(0, 60), l));
    }
    local[l] = types[l] == "sliding_attention";
  }
  return local;
}

/// rope_parameters of transformers 5 for one type of layer, or the field of transformers 4.
double read_theta(const Json& all, const std::string& file, const char* type, const char* old,
                  double otherwise) {
  const double theta = ConfigFields(all, file).number(old, 1, kMostTheta, otherwise);
  const Json::json_pointer place(std::string("/rope_parameters/") + type);
  if (!is_given(all, "rope_parameters")) return theta;
  const std::string name = fmt::format("{}: rope_parameters.{}", file, type);
  if (!all["rope_parameters"].is_object() || !all.contains(place) || !all[place].is_object()) {
    throw Error(fmt::format("{} is missing, must be an object with rope_theta", name));
  }
  const ConfigFields fields(all[place], name);
  const std::string kind = fields.text("rope_type", "default");
  if (kind != "default") {
    fields.refuse("rope_type", fmt::format("is \"{}\", must be default", kind));
  }
  return fields.number("rope_theta", 1, kMostTheta, theta);
}

/// petlab has one rate for all of a model's hidden states and attentions.
double read_dropout(const ConfigFields& fields) {
  const double rate = fields.number("attention_dropout", 0, 1, 0);
  for (const char* field : {"embedding_dropout", "mlp_dropout", "classifier_dropout"}) {
    const double other = fields.number(field, 0, 1, 0);
    if (other != rate) {
      fields.refuse(field, fmt::format("is {}, must be {}, as attention_dropout is: petlab has one "
                                       "rate (training.dropout sets another)",
                                       other, rate));
    }
  }
  return rate;
}

}  // namespace

ModernBertConfig parse_modernbert_config(std::string_view text, const std::string& name) {
  const Json json = parse_shallow_json(text, name);
  if (!json.is_object()) {
    throw Error(fmt::format("{}: is a JSON {}, expected an object", name, json.type_name()));
  }
  const ConfigFields fields(json, name);
  const auto only = [&](const char* field, const std::string& wanted, const char* otherwise) {
    const std::string found = fields.text(field, otherwise);
    if (found != wanted) fields.refuse(field, fmt::format("is \"{}\", must be {}", found, wanted));
  };
  only("model_type", "modernbert", "");
  ModernBertConfig config;
  config.vocab_size = fields.whole("vocab_size", 1, kMostRows);
  config.d_model = fields.whole("hidden_size", 1, kMostWidth);
  config.num_heads = fields.whole("num_attention_heads", 1, kMostWidth);
  config.d_ff = fields.whole("intermediate_size", 1, kMostWidth);
  config.max_tokens = fields.whole("max_position_embeddings", 1, kMostRows);
  if (config.d_model % config.num_heads != 0 || config.d_model / config.num_heads % 2 != 0) {
    fields.refuse("hidden_size", fmt::format("is {}, must be an even multiple of "
                                             "num_attention_heads, {}",
                                             config.d_model, config.num_heads));
  }
  // Hugging Face's defaults for missing fields.
  config.pad_token_id = fields.whole("pad_token_id", 0, config.vocab_size - 1, config.pad_token_id);
  config.local = read_layers(json, fields);
  config.window = fields.whole("local_attention", 1, kMostRows, 2 * config.window) / 2;
  config.global_theta =
      read_theta(json, name, "full_attention", "global_rope_theta", config.global_theta);
  config.local_theta =
      read_theta(json, name, "sliding_attention", "local_rope_theta",
                 is_given(json, "local_rope_theta") || !json.contains("local_rope_theta")
                     ? config.local_theta
                     : config.global_theta);
  config.norm_eps = fields.number("norm_eps", 0, 1, config.norm_eps);
  config.dropout = read_dropout(fields);
  config.biased_attention = fields.flag("attention_bias", false);
  config.biased_feed_forward = fields.flag("mlp_bias", false);
  config.biased_norms = fields.flag("norm_bias", false);
  only("hidden_activation", "gelu", "gelu");
  const std::string pooling = fields.text("classifier_pooling", "cls");
  if (pooling != "cls" && pooling != "mean") {
    fields.refuse("classifier_pooling", fmt::format("is \"{}\", must be cls or mean", pooling));
  }
  if (is_given(json, "rope_scaling")) fields.refuse("rope_scaling", "is set, must be null");
  if (fields.flag("is_decoder", false)) fields.refuse("is_decoder", "is true, must be false");
  return config;
}

ModernBertConfig read_modernbert_config(const std::filesystem::path& folder) {
  const auto file = FileBytes::map(folder / "config.json");
  const auto bytes = file->bytes();
  return parse_modernbert_config({reinterpret_cast<const char*>(bytes.data()), bytes.size()},
                                 file->name());
}

std::vector<WantedTensor> modernbert_tensors(const ModernBertConfig& config) {
  const std::int64_t d = config.d_model;
  std::vector<WantedTensor> wanted{{"embeddings.tok_embeddings.weight", {config.vocab_size, d}}};
  const auto norm = [&](const std::string& name) {
    wanted.push_back({name + ".weight", {d}});
    if (config.biased_norms) wanted.push_back({name + ".bias", {d}});
  };
  const auto linear = [&](const std::string& name, std::int64_t out, std::int64_t in, bool biased) {
    wanted.push_back({name + ".weight", {out, in}});
    if (biased) wanted.push_back({name + ".bias", {out}});
  };
  norm("embeddings.norm");
  for (std::int64_t l = 0; l < config.num_layers(); ++l) {
    const std::string layer = fmt::format("layers.{}.", l);
    if (l > 0) norm(layer + "attn_norm");
    linear(layer + "attn.Wqkv", 3 * d, d, config.biased_attention);
    linear(layer + "attn.Wo", d, d, config.biased_attention);
    norm(layer + "mlp_norm");
    linear(layer + "mlp.Wi", 2 * config.d_ff, d, config.biased_feed_forward);
    linear(layer + "mlp.Wo", d, config.d_ff, config.biased_feed_forward);
  }
  norm("final_norm");
  return wanted;
}

BackboneWeights load_modernbert_weights(const std::filesystem::path& folder,
                                        const ModernBertConfig& config) {
  static constexpr std::array<std::string_view, 1> kPrefixes{"model."};
  static constexpr std::array<std::string_view, 3> kIgnored{"head.", "decoder.", "classifier."};
  return pick_weights(open_weights(folder), modernbert_tensors(config), kPrefixes, kIgnored);
}

}  // namespace petlab::trainer
