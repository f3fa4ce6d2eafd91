#include "sweeps/backbone.h"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string_view>

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

  bool flag(const char* key, bool otherwise) const {
    const json value = object_.value(key, json(otherwise));
    return value.is_boolean() ? value.get<bool>() : otherwise;
  }
  std::string text(const char* key, const std::string& otherwise) const {
    const json value = object_.value(key, json(otherwise));
    return value.is_string() ? value.get<std::string>() : "";
  }
  const std::filesystem::path& file() const { return file_; }

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

/// The sizes that BERT's descendants have in common.
void read_encoder_sizes(const Config& config, BackboneShape& shape) {
  shape.d_model = config.size("hidden_size");
  shape.encoder_layers = config.size("num_hidden_layers");
  shape.heads = config.size("num_attention_heads");
  shape.d_ff = config.size("intermediate_size");
  shape.vocab_size = config.size("vocab_size");
  shape.max_positions = config.size("max_position_embeddings");
  if (shape.d_model % shape.heads != 0) {
    throw Error(
        fmt::format("{}: num_attention_heads: found {}, expected a divisor of hidden_size "
                    "({})",
                    config.file().string(), shape.heads, shape.d_model));
  }
  shape.d_head = shape.d_model / shape.heads;
}

void read_bert(const Config& config, BackboneShape& shape) {
  read_encoder_sizes(config, shape);
  shape.type_vocab_size = config.size("type_vocab_size");
}

void read_t5(const Config& config, BackboneShape& shape) {
  shape.d_model = config.size("d_model");
  shape.encoder_layers = config.size("num_layers");
  shape.decoder_layers = config.size("num_decoder_layers", shape.encoder_layers);
  shape.heads = config.size("num_heads");
  shape.d_head = config.size("d_kv");
  shape.d_ff = config.size("d_ff");
  shape.vocab_size = config.size("vocab_size");
  shape.relative_buckets = config.size("relative_attention_num_buckets", 32);
  shape.gated_ff = config.text("feed_forward_proj", "relu").starts_with("gated");
  // transformers 5 saves tie_word_embeddings as true even for T5 1.1, but then also this flag.
  shape.tied_embeddings =
      config.flag("scale_decoder_outputs", config.flag("tie_word_embeddings", true));
}

void read_modernbert(const Config& config, BackboneShape& shape) {
  read_encoder_sizes(config, shape);
  shape.gated_ff = true;
  shape.biased_attention = config.flag("attention_bias", false);
  shape.biased_ff = config.flag("mlp_bias", false);
  shape.biased_norms = config.flag("norm_bias", false);
}

struct ShapedKind {
  std::string_view model_type;
  void (*read)(const Config& config, BackboneShape& shape);
};
constexpr std::array kShapedKinds{ShapedKind{"bert", read_bert}, ShapedKind{"roberta", read_bert},
                                  ShapedKind{"t5", read_t5},
                                  ShapedKind{"modernbert", read_modernbert}};

}  // namespace

std::int64_t BackboneShape::parameters() const {
  const std::int64_t d = d_model;
  if (model_type == "modernbert") {
    // Its first layer has no norm before attention, but a norm follows the last layer.
    const std::int64_t norm = biased_norms ? 2 * d : d;
    const std::int64_t attention = 4 * (d * d + (biased_attention ? d : 0));
    const std::int64_t feed_forward = 3 * d * d_ff + (biased_ff ? 2 * d_ff + d : 0);
    return vocab_size * d + norm + encoder_layers * (attention + feed_forward + 2 * norm);
  }
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

std::string known_model_types() {
  std::string known;
  for (const ShapedKind& kind : kShapedKinds) {
    const bool is_last = &kind == &kShapedKinds.back();
    known += (known.empty() ? "" : is_last ? " or " : ", ") + std::string(kind.model_type);
  }
  return known;
}

std::string read_model_type(const std::filesystem::path& folder) {
  return model_type_of(read_config(folder / "config.json"));
}

std::int64_t size_of(const TrialConfig& config, std::string_view field) {
  const json value = find_field(field)->get(config);
  return value.is_boolean() ? value.get<bool>() : value.get<std::int64_t>();
}

std::int64_t module_layers(const TrialConfig& config, const BackboneShape& shape) {
  const DeclaredKind& kind = *module_of(config)->declared;
  if (kind.layers.is_zero()) return shape.layers();
  metrics::SizeValues values{
      {"L", shape.layers()}, {"Le", shape.encoder_layers}, {"Ld", shape.decoder_layers}};
  for (const auto& [name, number] : shape.numbers) values.emplace_back(name, number);
  for (const metrics::SizeName& size : kind.sizes) {
    values.emplace_back(size.name, size_of(config, size.field));
  }
  return kind.layers.value(values);
}

BackboneShape read_backbone_numbers(const std::filesystem::path& folder) {
  const json object = read_config(folder / "config.json");
  BackboneShape shape;
  shape.model_type = model_type_of(object);
  for (const auto& [name, value] : object.items()) {
    if (value.is_number_integer() && value >= 0 && value <= kMaxDimension) {
      shape.numbers[name] = value.get<std::int64_t>();
    }
  }
  return shape;
}

BackboneShape read_backbone_shape(const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / "config.json";
  const json object = read_config(file);
  const Config config(file, object);
  BackboneShape shape;
  shape.model_type = model_type_of(object);
  for (const ShapedKind& kind : kShapedKinds) {
    if (kind.model_type == shape.model_type) {
      kind.read(config, shape);
      return shape;
    }
  }
  throw Error(fmt::format("{}: model_type: found {}, expected {}", file.string(),
                          base::shown(object.value("model_type", json())), known_model_types()));
}

metrics::ModuleStorage module_storage(const TrialConfig& config, const BackboneShape& shape) {
  const ModuleRow* const row = module_of(config);
  const metrics::StorageFormula* const formula = row == nullptr ? nullptr : row->formula();
  if (formula == nullptr) {
    throw std::invalid_argument(
        fmt::format("module.kind is '{}', must be one with a storage formula", config.module.kind));
  }
  metrics::ModuleStorage storage;
  storage.formula = formula;
  storage.d_model = shape.d_model;
  if (shape.heads * shape.d_head != shape.d_model) {
    storage.attention_width = shape.heads * shape.d_head;
  }
  storage.layers = formula->per_model && shape.layers() == 0 ? 1 : module_layers(config, shape);
  storage.numbers = shape.numbers;
  storage.share = config.module.share;
  storage.mask = config.module.mask;
  storage.sparsity_ratio = config.module.sparsity_ratio;
  storage.tasks = static_cast<std::int64_t>(config.tasks.size());
  for (const metrics::SizeName& size : formula->sizes) {
    const bool is_first = &size == &formula->sizes.front();
    (is_first ? storage.size : storage.other_sizes.emplace_back()) = size_of(config, size.field);
  }
  return storage;
}

}  // namespace petlab::sweeps
