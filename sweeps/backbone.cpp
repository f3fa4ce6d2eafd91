#include "sweeps/backbone.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <stdexcept>

#include "base/files.h"
#include "base/shallow_json.h"
#include "base/shown.h"
#include "sweeps/catalog.h"
#include "sweeps/error.h"
#include "sweeps/fields.h"

namespace petlab::sweeps {
namespace {

using nlohmann::json;

constexpr std::uintmax_t kMaxConfig = 4 << 20;
// Far beyond any real size, but small enough that no product below exceeds 64 bits.
constexpr std::int64_t kMaxDimension = 1 << 22;

class Config {
 public:
  Config(const std::filesystem::path& file, const json& object) : file_(file), object_(object) {}

  std::int64_t size(const char* key, std::optional<std::int64_t> otherwise = std::nullopt,
                    std::int64_t least = 1) const {
    const auto found = object_.find(key);
    if (found == object_.end() || found->is_null()) {
      if (otherwise) return *otherwise;
      throw Error(
          fmt::format("{}: {} is missing, must be a whole number > 0", file_.string(), key));
    }
    const bool fits = found->is_number_integer() &&
                      (!found->is_number_unsigned() || found->get<std::uint64_t>() <= INT64_MAX);
    const std::int64_t value = fits ? found->get<std::int64_t>() : -1;
    if (!fits || value < least || value > kMaxDimension) {
      throw Error(fmt::format("{}: {}: found {}, expected a whole number from {} to {}",
                              file_.string(), key, base::shown(*found), least, kMaxDimension));
    }
    return value;
  }

 private:
  const std::filesystem::path& file_;
  const json& object_;
};

json read_config(const std::filesystem::path& file) {
  json object;
  try {
    object = base::parse_shallow_json(base::read_file(file, kMaxConfig), file.string());
  } catch (const json::exception&) {
    object = nullptr;
  }
  if (object.is_object()) return object;
  throw Error(fmt::format(
      "{}: found something else than a JSON object, expected a Hugging Face configuration",
      file.string()));
}

std::string model_type_of(const json& object) {
  const json type = object.value("model_type", json());
  return type.is_string() ? type.get<std::string>() : "";
}

}  // namespace

std::int64_t BackboneShape::parameters() const {
  const std::int64_t d = d_model;
  if (decoder_layers == 0) {
    const std::int64_t norm = 2 * d;
    const std::int64_t embeddings = (vocab_size + max_positions + type_vocab_size) * d + norm;
    const std::int64_t attention = 4 * (d * d + d) + norm;
    const std::int64_t feed_forward = 2 * d * d_ff + d_ff + d + norm;
    const std::int64_t pooler = d * d + d;
    return embeddings + encoder_layers * (attention + feed_forward) + pooler;
  }
  // T5: no biases, norms of d weights, one table of relative positions per stack.
  const std::int64_t attention = 4 * d * heads * d_head;
  const std::int64_t feed_forward = (gated_ff ? 3 : 2) * d * d_ff;
  const std::int64_t embeddings = vocab_size * d * (tied_embeddings ? 1 : 2);
  return embeddings + encoder_layers * (attention + feed_forward + 2 * d) +
         decoder_layers * (2 * attention + feed_forward + 3 * d) + 2 * relative_buckets * heads +
         2 * d;
}

std::string read_model_type(const std::filesystem::path& folder) {
  return model_type_of(read_config(folder / "config.json"));
}

BackboneShape read_backbone_shape(const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / "config.json";
  const json object = read_config(file);
  const Config config(file, object);
  BackboneShape shape;
  shape.model_type = model_type_of(object);
  if (shape.model_type == "bert" || shape.model_type == "roberta") {
    shape.d_model = config.size("hidden_size");
    shape.encoder_layers = config.size("num_hidden_layers");
    shape.heads = config.size("num_attention_heads");
    shape.d_ff = config.size("intermediate_size");
    shape.vocab_size = config.size("vocab_size");
    shape.max_positions = config.size("max_position_embeddings");
    shape.type_vocab_size = config.size("type_vocab_size");
    if (shape.d_model % shape.heads != 0) {
      throw Error(
          fmt::format("{}: num_attention_heads: found {}, expected a divisor of hidden_size "
                      "({})",
                      file.string(), shape.heads, shape.d_model));
    }
    shape.d_head = shape.d_model / shape.heads;
    return shape;
  }
  if (shape.model_type == "t5") {
    shape.d_model = config.size("d_model");
    shape.encoder_layers = config.size("num_layers");
    shape.decoder_layers = config.size("num_decoder_layers", shape.encoder_layers);
    shape.heads = config.size("num_heads");
    shape.d_head = config.size("d_kv");
    shape.d_ff = config.size("d_ff");
    shape.vocab_size = config.size("vocab_size");
    shape.relative_buckets = config.size("relative_attention_num_buckets", 32);
    const json feed_forward = object.value("feed_forward_proj", json("relu"));
    shape.gated_ff =
        feed_forward.is_string() && feed_forward.get_ref<const std::string&>().starts_with("gated");
    // transformers 5 saves tie_word_embeddings as true even for T5 1.1, but then also this flag.
    const auto flag = [&](const char* field, bool otherwise) {
      const json value = object.value(field, json(otherwise));
      return value.is_boolean() ? value.get<bool>() : otherwise;
    };
    shape.tied_embeddings = flag("scale_decoder_outputs", flag("tie_word_embeddings", true));
    return shape;
  }
  throw Error(fmt::format("{}: model_type: found {}, expected bert, roberta or t5", file.string(),
                          base::shown(object.value("model_type", json()))));
}

metrics::ModuleStorage module_storage(const TrialConfig& config, const BackboneShape& shape) {
  const ModuleRow* const row = module_of(config);
  if (row == nullptr || !row->family) {
    throw std::invalid_argument(
        fmt::format("module.kind is '{}', must be one with a storage formula", config.module.kind));
  }
  metrics::ModuleStorage storage;
  storage.family = *row->family;
  storage.d_model = shape.d_model;
  if (shape.heads * shape.d_head != shape.d_model) {
    storage.attention_width = shape.heads * shape.d_head;
  }
  storage.layers = shape.layers();
  if (config.module.kind == "lora" && config.module.cross_attention) {
    storage.layers += shape.decoder_layers;
  }
  storage.size = find_field(row->size_field)->get(config).get<std::int64_t>();
  storage.share = config.module.share;
  storage.mask = config.module.mask;
  storage.sparsity_ratio = config.module.sparsity_ratio;
  storage.tasks = static_cast<std::int64_t>(config.tasks.size());
  if (storage.family == metrics::ModuleFamily::hypernetwork) {
    storage.hypernetwork = {config.module.hyper_embedding, config.module.hyper_hidden,
                            config.module.hyper_projected};
  }
  return storage;
}

}  // namespace petlab::sweeps
