#include "trainer/backbones/t5_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "trainer/backbones/config_fields.h"
#include "trainer/files/error.h"
#include "trainer/files/file_bytes.h"
#include "trainer/files/shallow_json.h"

namespace petlab::trainer {
namespace {

void read_feed_forward(const ConfigFields& fields, T5Config& config) {
  std::string name = fields.text("feed_forward_proj", "relu");
  const std::string found = name;
  constexpr std::string_view kGated = "gated-";
  config.gated = name.starts_with(kGated);
  if (config.gated) name.erase(0, kGated.size());
  if (name == "relu") {
    config.activation = Activation::relu;
  } else if (name == "gelu_new" || (name == "gelu" && config.gated)) {
    // T5 1.1's gated-gelu is the tanh form.
    config.activation = Activation::gelu_tanh;
  } else if (name == "gelu") {
    config.activation = Activation::gelu;
  } else {
    fields.refuse("feed_forward_proj",
                  fmt::format("is \"{}\", must be relu, gelu, gelu_new, gated-relu, gated-gelu or "
                              "gated-gelu_new",
                              found));
  }
}

constexpr std::string_view kShared = "shared.weight";
constexpr std::string_view kOutput = "lm_head.weight";
/// The names under which a checkpoint may have the embedding. transformers takes the first of
/// these.
constexpr std::array<std::string_view, 4> kEmbeddingNames{kShared, "encoder.embed_tokens.weight",
                                                          "decoder.embed_tokens.weight", kOutput};

bool are_equal(const TensorView& a, const TensorView& b) {
  if (a.shape != b.shape) return false;
  return a.dtype == b.dtype ? std::ranges::equal(a.bytes, b.bytes) : to_floats(a) == to_floats(b);
}

/// Names the embedding shared.weight and returns whether it is the output projection, too. Throws
/// Error if encoder or decoder has another embedding.
bool find_embedding(StoredWeights& weights) {
  const auto name = std::ranges::find_if(
      kEmbeddingNames, [&](std::string_view one) { return weights.tensors.contains(one); });
  if (name == kEmbeddingNames.end()) return true;  // pick_weights reports it as missing
  const StoredWeights::Entry embedding = weights.tensors.find(*name)->second;
  bool tied = true;
  for (const std::string_view other : kEmbeddingNames) {
    const auto found = weights.tensors.find(other);
    if (found == weights.tensors.end() || are_equal(found->second.tensor, embedding.tensor)) {
      continue;
    }
    if (other != kOutput) {
      throw Error(
          fmt::format("{}: tensor {} differs from {}, must be equal: petlab's T5 has one "
                      "embedding for encoder and decoder",
                      found->second.file, other, *name));
    }
    tied = false;
  }
  weights.tensors.emplace(kShared, embedding);
  return tied;
}

}  // namespace

T5Config parse_t5_config(std::string_view text, const std::string& name) {
  const nlohmann::json json = parse_shallow_json(text, name);
  if (!json.is_object()) {
    throw Error(fmt::format("{}: is a JSON {}, expected an object", name, json.type_name()));
  }
  const ConfigFields fields(json, name);
  const std::string type = fields.text("model_type", "");
  if (type != "t5") {
    fields.refuse("model_type", type.empty() ? "is missing, must be t5"
                                             : fmt::format("is \"{}\", must be t5", type));
  }
  T5Config config;
  config.vocab_size = fields.whole("vocab_size", 1, kMostRows);
  config.d_model = fields.whole("d_model", 1, kMostWidth);
  config.d_kv = fields.whole("d_kv", 1, kMostWidth);
  config.num_heads = fields.whole("num_heads", 1, kMostWidth);
  config.d_ff = fields.whole("d_ff", 1, kMostWidth);
  config.num_layers = fields.whole("num_layers", 1, kMostLayers);
  config.num_decoder_layers = fields.whole("num_decoder_layers", 1, kMostLayers, config.num_layers);
  // An encoder uses half of the buckets for each direction, and half of those for long distances.
  config.num_buckets = fields.whole("relative_attention_num_buckets", 4, kMostWidth, 32);
  config.max_distance = fields.whole("relative_attention_max_distance", 1, kMostWidth, 128);
  if (config.max_distance <= config.num_buckets / 2) {
    fields.refuse("relative_attention_max_distance",
                  fmt::format("is {}, must be more than {}, half of "
                              "relative_attention_num_buckets",
                              config.max_distance, config.num_buckets / 2));
  }
  config.dropout = fields.number("dropout_rate", 0, 1, 0.1);
  config.layer_norm_eps = fields.number("layer_norm_epsilon", 0, 1, 1e-6);
  read_feed_forward(fields, config);
  config.tied = fields.flag("tie_word_embeddings", true);
  config.scaled_output = fields.flag("scale_decoder_outputs", config.tied);
  config.pad_token_id = fields.whole("pad_token_id", 0, config.vocab_size - 1, 0);
  config.eos_token_id = fields.whole("eos_token_id", 0, config.vocab_size - 1, 1);
  config.decoder_start_token_id =
      fields.whole("decoder_start_token_id", 0, config.vocab_size - 1, config.pad_token_id);
  if (config.inner() > kMostWidth) {
    fields.refuse("num_heads", fmt::format("is {}, times d_kv, {}, must be at most {}",
                                           config.num_heads, config.d_kv, kMostWidth));
  }
  return config;
}

T5Config read_t5_config(const std::filesystem::path& folder) {
  const auto file = FileBytes::map(folder / "config.json");
  const auto bytes = file->bytes();
  return parse_t5_config({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, file->name());
}

std::vector<WantedTensor> t5_tensors(const T5Config& config) {
  const std::int64_t d = config.d_model;
  std::vector<WantedTensor> wanted{{"shared.weight", {config.vocab_size, d}}};
  const auto norm = [&](const std::string& at) { wanted.push_back({at + ".weight", {d}}); };
  const auto attention = [&](const std::string& at) {
    for (const char* projection : {".q.weight", ".k.weight", ".v.weight"}) {
      wanted.push_back({at + projection, {config.inner(), d}});
    }
    wanted.push_back({at + ".o.weight", {d, config.inner()}});
  };
  for (const bool decoder : {false, true}) {
    const std::string stack = decoder ? "decoder" : "encoder";
    for (std::int64_t l = 0; l < (decoder ? config.num_decoder_layers : config.num_layers); ++l) {
      const std::string block = fmt::format("{}.block.{}.layer.", stack, l);
      attention(block + "0.SelfAttention");
      if (l == 0) {
        wanted.push_back({block + "0.SelfAttention.relative_attention_bias.weight",
                          {config.num_buckets, config.num_heads}});
      }
      norm(block + "0.layer_norm");
      if (decoder) {
        attention(block + "1.EncDecAttention");
        norm(block + "1.layer_norm");
      }
      const std::string last = block + (decoder ? "2." : "1.");
      for (const char* inner : {"wi", "wi_0", "wi_1"}) {
        if ((std::string_view(inner) != "wi") != config.gated) continue;
        wanted.push_back({last + "DenseReluDense." + inner + ".weight", {config.d_ff, d}});
      }
      wanted.push_back({last + "DenseReluDense.wo.weight", {d, config.d_ff}});
      norm(last + "layer_norm");
    }
    norm(stack + ".final_layer_norm");
  }
  if (!config.tied) wanted.push_back({"lm_head.weight", {config.vocab_size, d}});
  return wanted;
}

T5Checkpoint read_t5_checkpoint(const std::filesystem::path& folder) {
  static constexpr std::array<std::string_view, 4> kIgnored{
      "encoder.embed_tokens.", "decoder.embed_tokens.",
      "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.", "lm_head."};
  T5Config config = read_t5_config(folder);
  StoredWeights stored = open_weights(folder);
  config.tied = find_embedding(stored);
  BackboneWeights weights = pick_weights(stored, t5_tensors(config), {}, kIgnored);
  return {config, std::move(weights)};
}

std::int64_t relative_bucket(std::int64_t distance, bool both_ways, std::int64_t num_buckets,
                             std::int64_t max_distance) {
  std::int64_t first = 0;
  if (both_ways) {
    num_buckets /= 2;
    if (distance > 0) first = num_buckets;
    distance = std::abs(distance);
  } else {
    distance = std::max<std::int64_t>(-distance, 0);
  }
  const std::int64_t exact = num_buckets / 2;
  if (distance < exact) return first + distance;
  // In float32 and truncated, as in Hugging Face.
  const float ratio =
      std::log(static_cast<float>(distance) / static_cast<float>(exact)) /
      static_cast<float>(std::log(static_cast<double>(max_distance) / static_cast<double>(exact)));
  const auto further = static_cast<std::int64_t>(ratio * static_cast<float>(num_buckets - exact));
  return first + std::min(exact + further, num_buckets - 1);
}

}  // namespace petlab::trainer
