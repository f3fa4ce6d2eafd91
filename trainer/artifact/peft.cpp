// LoRA in the format of Hugging Face's PEFT: adapter_config.json and adapter_model.safetensors.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "trainer/artifact/foreign_module.h"
#include "trainer/artifact/module_formats.h"
#include "trainer/files/error.h"
#include "trainer/modules/layer_weights.h"

namespace petlab::trainer {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr const char* kPeftConfig = "adapter_config.json";
constexpr const char* kPeftWeights = "adapter_model.safetensors";
constexpr const char* kPeftOldWeights = "adapter_model.bin";
const std::string kModel = "base_model.model.";
const std::string kNoLora = "petlab's LoRA has no counterpart";

/// The names of the head's two layers in the model. RoBERTa's classifier has both; BERT's
/// classifier is the second, and its pooler the first.
struct HeadPlaces {
  std::string dense, out;
};
HeadPlaces head_places(const sweeps::BackboneShape& config) {
  if (config.model_type == "bert") return {"bert.pooler.dense", "classifier"};
  return {"classifier.dense", "classifier.out_proj"};
}

/// "query.lora_A" in layer 3 becomes encoder.layer.3.attention.self.query.lora_A.weight.
std::string place_of(std::string_view weight, std::int64_t layer) {
  return fmt::format("encoder.layer.{}.attention.self.{}.weight", layer, weight);
}

// ModernBERT's queries, keys and values are one projection, Wqkv. One LoRA of twice the rank on it
// holds both of petlab's: A = [A_q; A_v], B = [[B_q, 0], [0, 0], [0, B_v]]. Its own classifier is
// another than petlab's head, so the head has a file of its own.

constexpr const char* kHeadWeights = "head.safetensors";
constexpr std::array<const char*, 2> kJoined{"query", "value"};

bool is_joined(const sweeps::BackboneShape& backbone) {
  return backbone.model_type == "modernbert";
}

std::string joined_place_of(char side, std::int64_t layer) {
  return fmt::format("layers.{}.attn.Wqkv.lora_{}.weight", layer, side);
}

/// Calls visit(joined, own, n) for each n numbers that both forms of a layer's LoRA have, by their
/// places in B (3 d, 2 r), or A (2 r, d), and in the layer's weight of petlab's.
template <typename Visit>
void each_joined(const LayeredModule& module, char side, std::size_t projection, Visit visit) {
  const std::int64_t d = module.d_model, r = module.size;
  const auto which = static_cast<std::int64_t>(projection);
  if (side == 'A') return visit(which * r * d, std::int64_t{0}, r * d);
  for (std::int64_t row = 0; row < d; ++row) {
    visit((2 * which * d + row) * 2 * r + which * r, row * r, r);
  }
}

std::string own_name(std::size_t projection, char side) {
  return fmt::format("{}.lora_{}", kJoined[projection], side);
}

std::vector<std::int64_t> joined_shape(const LayeredModule& module, char side) {
  return side == 'A' ? std::vector{2 * module.size, module.d_model}
                     : std::vector{3 * module.d_model, 2 * module.size};
}

LayerTensor joined_tensor(const LayeredModule& module, char side, std::int64_t layer) {
  LayerTensor joined{kModel + joined_place_of(side, layer), joined_shape(module, side), {}};
  joined.values.resize(static_cast<std::size_t>(elements(joined.shape)));
  for (std::size_t p = 0; p < kJoined.size(); ++p) {
    const std::vector<float>& own = module.weights.find(own_name(p, side))->second.values;
    const std::int64_t begin = layer * module.size * module.d_model;
    each_joined(module, side, p, [&](std::int64_t to, std::int64_t from, std::int64_t n) {
      std::copy_n(own.begin() + begin + from, n, joined.values.begin() + to);
    });
  }
  return joined;
}

/// The inverse, for all layers.
void take_joined(ForeignTensors& tensors, LayeredModule& module) {
  // A model with a head has "model." before its encoder's names.
  const bool headless = tensors.contains(kModel + joined_place_of('A', 0));
  const std::string prefix = headless ? kModel : kModel + "model.";
  for (const LayerWeight& weight : layer_weights(module.kind, module.d_model, module.size)) {
    LayerTensor all{std::string(weight.name), weight.shape, {}};
    all.shape.insert(all.shape.begin(), module.layers);
    all.values.resize(static_cast<std::size_t>(elements(all.shape)));
    module.weights.emplace(weight.name, std::move(all));
  }
  for (std::int64_t l = 0; l < module.layers; ++l) {
    for (const char side : {'A', 'B'}) {
      const std::string name = prefix + joined_place_of(side, l);
      std::vector<float> joined = tensors.take(name, joined_shape(module, side));
      for (std::size_t p = 0; p < kJoined.size(); ++p) {
        std::vector<float>& own = module.weights.find(own_name(p, side))->second.values;
        const std::int64_t begin = l * module.size * module.d_model;
        each_joined(module, side, p, [&](std::int64_t from, std::int64_t to, std::int64_t n) {
          std::copy_n(joined.begin() + from, n, own.begin() + begin + to);
          std::fill_n(joined.begin() + from, n, 0.0F);
        });
      }
      if (std::any_of(joined.begin(), joined.end(), [](float x) { return x != 0; })) {
        throw Error(
            fmt::format("{}: tensor {} acts on keys, or mixes queries and values, must be "
                        "0 there: petlab has LoRA on query and value",
                        tensors.source(), name));
      }
    }
  }
}

void check_targets(const ForeignConfig& config, const json& targets, bool joined) {
  // A string is a pattern. The file's tensors show by name what it matched.
  if (!targets.is_array()) return;
  for (const json& target : targets) {
    const std::string name = target.is_string() ? target.get<std::string>() : target.dump();
    const std::string last = name.substr(name.rfind('.') + 1);
    if (joined ? last != "Wqkv" : last != "query" && last != "value") {
      config.refuse("target_modules", joined ? "Wqkv" : "query and value",
                    "petlab's LoRA acts on no others");
    }
  }
}

void check_initialisation(ForeignConfig& config) {
  // Other initialisations change the backbone's weights too, so the module alone is not the
  // difference.
  const json& init = config.field("init_lora_weights");
  if (!init.is_null() && !init.is_boolean() && init != "gaussian" && init != "eva") {
    config.refuse("init_lora_weights", "true, false, \"gaussian\" or \"eva\"",
                  "it changes the backbone's weights");
  }
}

}  // namespace

std::vector<ModuleFile> peft_files(const LayeredModule& module, const sweeps::BackboneShape& config,
                                   const std::string& backbone) {
  const bool bert = config.model_type == "bert";
  const bool joined = is_joined(config);
  const double scaled = joined ? 2 * module.alpha : module.alpha;
  const ordered_json alpha = scaled == std::trunc(scaled) && scaled < 1e15
                                 ? ordered_json(static_cast<std::int64_t>(scaled))
                                 : ordered_json(scaled);
  const ordered_json fields{
      {"peft_type", "LORA"},
      {"task_type", joined ? "FEATURE_EXTRACTION" : "SEQ_CLS"},
      {"base_model_name_or_path", backbone},
      {"inference_mode", true},
      {"r", joined ? 2 * module.size : module.size},
      {"lora_alpha", alpha},
      {"lora_dropout", 0.0},
      {"bias", "none"},
      {"fan_in_fan_out", false},
      {"target_modules", joined ? ordered_json{"Wqkv"} : ordered_json{"query", "value"}},
      {"modules_to_save", joined ? ordered_json()
                          : bert ? ordered_json{"classifier", "pooler"}
                                 : ordered_json{"classifier"}},
  };
  const ModuleFile about{kPeftConfig, ModuleFile::Kind::json, fields.dump(2) + "\n", {}, {}};
  ModuleFile weights{kPeftWeights, ModuleFile::Kind::safetensors, {}, {}, {}};
  const auto add_to = [](ModuleFile& file, const std::string& name, const LayerTensor& tensor) {
    file.tensors.push_back({name, tensor.shape, tensor.values});
  };
  if (joined) {
    for (std::int64_t l = 0; l < module.layers; ++l) {
      for (const char side : {'A', 'B'}) weights.tensors.push_back(joined_tensor(module, side, l));
    }
    ModuleFile head{kHeadWeights, ModuleFile::Kind::safetensors, {}, {}, {}};
    add_to(head, "dense.weight", module.head.dense_weight);
    add_to(head, "dense.bias", module.head.dense_bias);
    add_to(head, "out_proj.weight", module.head.out_weight);
    add_to(head, "out_proj.bias", module.head.out_bias);
    return {std::move(weights), about, std::move(head)};
  }
  for (const LayerWeight& weight : layer_weights(module.kind, module.d_model, module.size)) {
    const LayerTensor& all = module.weights.at(std::string(weight.name));
    const auto n = static_cast<std::ptrdiff_t>(elements(weight.shape));
    for (std::int64_t l = 0; l < module.layers; ++l) {
      const auto begin = all.values.begin() + l * n;
      weights.tensors.push_back({kModel + encoder_prefix(config) + place_of(weight.name, l),
                                 weight.shape,
                                 {begin, begin + n}});
    }
  }
  const HeadPlaces places = head_places(config);
  const auto add = [&](const std::string& name, const LayerTensor& tensor) {
    add_to(weights, kModel + name, tensor);
  };
  add(places.dense + ".weight", module.head.dense_weight);
  add(places.dense + ".bias", module.head.dense_bias);
  add(places.out + ".weight", module.head.out_weight);
  add(places.out + ".bias", module.head.out_bias);
  return {std::move(weights), about};
}

LayeredModule read_peft(const std::filesystem::path& folder, const ModuleBackbone& backbone) {
  ForeignConfig config = ForeignConfig::read(folder / kPeftConfig);
  if (config.field("peft_type") != "LORA") config.refuse("peft_type", "\"LORA\"");
  const std::string task = config.text("task_type", "");
  if (!task.empty() && task != "SEQ_CLS" && task != "FEATURE_EXTRACTION") {
    config.refuse("task_type", "SEQ_CLS, FEATURE_EXTRACTION or null",
                  "petlab's encoders classify or score sequences");
  }
  LayeredModule module;
  module.kind = kind_of_format("peft");
  module.d_model = backbone.shape.d_model;
  module.layers = backbone.shape.encoder_layers;
  const json& rank = config.field("r");
  if (!rank.is_number_integer() || rank.get<double>() < 1 || rank.get<double>() > 1e6) {
    config.refuse("r", "a whole number > 0");
  }
  module.size = rank.get<std::int64_t>();
  module.alpha = config.number("lora_alpha", 8);
  if (!(module.alpha > 0)) config.refuse("lora_alpha", "> 0");
  // Converts to petlab's definition of the scale.
  if (config.flag("use_rslora", false)) {
    module.alpha *= std::sqrt(static_cast<double>(module.size));
  }
  const bool joined = is_joined(backbone.shape);
  if (joined) {
    if (module.size % 2 != 0) config.refuse("r", "even: half for queries and half for values");
    module.size /= 2;
    module.alpha /= 2;
  }
  config.require("bias", "none", kNoLora);
  config.require("fan_in_fan_out", false, "BERT's and RoBERTa's weights are (out, in)");
  check_targets(config, config.field("target_modules"), joined);
  check_initialisation(config);
  config.ignore({"peft_version", "base_model_name_or_path", "revision", "inference_mode",
                 "lora_dropout", "modules_to_save", "exclude_modules", "auto_mapping",
                 "megatron_core", "qalora_group_size", "eva_config"});
  config.refuse_others(kNoLora);

  const auto safetensors = folder / kPeftWeights;
  ForeignTensors tensors(open_weights_file(
      std::filesystem::exists(safetensors) ? safetensors : folder / kPeftOldWeights));
  if (joined) {
    take_joined(tensors, module);
    HeadNames names = backbone_head_names(backbone.shape, false);
    names.dense = {"dense"};
    names.out = {"out_proj"};
    std::optional<ForeignTensors> head;
    const auto file = folder / kHeadWeights;
    if (std::filesystem::exists(file)) head.emplace(open_weights_file(file));
    module.head = read_head(head ? &*head : nullptr, names, backbone);
    tensors.refuse_others("petlab has LoRA on query and value");
    return module;
  }
  // A model without a head has no "roberta." before its encoder's names.
  std::string prefix = kModel + encoder_prefix(backbone.shape);
  if (!tensors.contains(prefix + place_of("query.lora_A", 0)) &&
      tensors.contains(kModel + place_of("query.lora_A", 0))) {
    prefix = kModel;
  }
  for (const LayerWeight& weight : layer_weights(module.kind, module.d_model, module.size)) {
    LayerTensor all{std::string(weight.name), weight.shape, {}};
    all.shape.insert(all.shape.begin(), module.layers);
    for (std::int64_t l = 0; l < module.layers; ++l) {
      const std::vector<float> layer_values =
          tensors.take(prefix + place_of(weight.name, l), weight.shape);
      all.values.insert(all.values.end(), layer_values.begin(), layer_values.end());
    }
    module.weights.emplace(weight.name, std::move(all));
  }
  const bool bert = backbone.shape.model_type == "bert";
  const HeadPlaces places = head_places(backbone.shape);
  HeadNames names = backbone_head_names(backbone.shape, bert);
  names.dense = {kModel + places.dense};
  names.out = {kModel + places.out};
  module.head = read_head(&tensors, names, backbone);
  tensors.refuse_others("petlab has LoRA on query and value, and a head");
  return module;
}

}  // namespace petlab::trainer
