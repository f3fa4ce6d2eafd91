// LoRA in the format of Hugging Face's PEFT: adapter_config.json and adapter_model.safetensors.
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "trainer/artifact/foreign_module.h"
#include "trainer/artifact/module_formats.h"
#include "trainer/files/error.h"

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
HeadPlaces head_places(const EncoderConfig& config) {
  if (config.kind == EncoderKind::bert) return {"bert.pooler.dense", "classifier"};
  return {"classifier.dense", "classifier.out_proj"};
}

/// "query.lora_A" in layer 3 becomes encoder.layer.3.attention.self.query.lora_A.weight.
std::string place_of(std::string_view weight, std::int64_t layer) {
  return fmt::format("encoder.layer.{}.attention.self.{}.weight", layer, weight);
}

void check_targets(const ForeignConfig& config, const json& targets) {
  // A string is a pattern. The file's tensors show by name what it matched.
  if (!targets.is_array()) return;
  for (const json& target : targets) {
    const std::string name = target.is_string() ? target.get<std::string>() : target.dump();
    const std::string last = name.substr(name.rfind('.') + 1);
    if (last != "query" && last != "value") {
      config.refuse("target_modules", "query and value", "petlab's LoRA acts on no others");
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

std::vector<ModuleFile> peft_files(const LayeredModule& module, const EncoderConfig& config,
                                   const std::string& backbone) {
  const bool bert = config.kind == EncoderKind::bert;
  const ordered_json alpha = module.alpha == std::trunc(module.alpha) && module.alpha < 1e15
                                 ? ordered_json(static_cast<std::int64_t>(module.alpha))
                                 : ordered_json(module.alpha);
  const ordered_json fields{
      {"peft_type", "LORA"},
      {"task_type", "SEQ_CLS"},
      {"base_model_name_or_path", backbone},
      {"inference_mode", true},
      {"r", module.size},
      {"lora_alpha", alpha},
      {"lora_dropout", 0.0},
      {"bias", "none"},
      {"fan_in_fan_out", false},
      {"target_modules", {"query", "value"}},
      {"modules_to_save", bert ? ordered_json{"classifier", "pooler"} : ordered_json{"classifier"}},
  };
  ModuleFile weights{kPeftWeights, ModuleFile::Kind::safetensors, {}, {}, {}};
  for (const LayerWeight& weight : layer_weights(module.family, module.d_model, module.size)) {
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
    weights.tensors.push_back({kModel + name, tensor.shape, tensor.values});
  };
  add(places.dense + ".weight", module.head.dense_weight);
  add(places.dense + ".bias", module.head.dense_bias);
  add(places.out + ".weight", module.head.out_weight);
  add(places.out + ".bias", module.head.out_bias);
  return {std::move(weights), {kPeftConfig, ModuleFile::Kind::json, fields.dump(2) + "\n", {}, {}}};
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
  module.family = metrics::ModuleFamily::lora;
  module.d_model = backbone.config.d_model;
  module.layers = backbone.config.num_layers;
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
  config.require("bias", "none", kNoLora);
  config.require("fan_in_fan_out", false, "BERT's and RoBERTa's weights are (out, in)");
  check_targets(config, config.field("target_modules"));
  check_initialisation(config);
  config.ignore({"peft_version", "base_model_name_or_path", "revision", "inference_mode",
                 "lora_dropout", "modules_to_save", "exclude_modules", "auto_mapping",
                 "megatron_core", "qalora_group_size", "eva_config"});
  config.refuse_others(kNoLora);

  const auto safetensors = folder / kPeftWeights;
  ForeignTensors tensors(open_weights_file(
      std::filesystem::exists(safetensors) ? safetensors : folder / kPeftOldWeights));
  // A model without a head has no "roberta." before its encoder's names.
  std::string prefix = kModel + encoder_prefix(backbone.config);
  if (!tensors.contains(prefix + place_of("query.lora_A", 0)) &&
      tensors.contains(kModel + place_of("query.lora_A", 0))) {
    prefix = kModel;
  }
  for (const LayerWeight& weight : layer_weights(module.family, module.d_model, module.size)) {
    LayerTensor all{std::string(weight.name), weight.shape, {}};
    all.shape.insert(all.shape.begin(), module.layers);
    for (std::int64_t l = 0; l < module.layers; ++l) {
      const std::vector<float> layer_values =
          tensors.take(prefix + place_of(weight.name, l), weight.shape);
      all.values.insert(all.values.end(), layer_values.begin(), layer_values.end());
    }
    module.weights.emplace(weight.name, std::move(all));
  }
  const bool bert = backbone.config.kind == EncoderKind::bert;
  const HeadPlaces places = head_places(backbone.config);
  HeadNames names = backbone_head_names(backbone.config, bert);
  names.dense = {kModel + places.dense};
  names.out = {kModel + places.out};
  module.head = read_head(&tensors, names, backbone);
  tensors.refuse_others("petlab has LoRA on query and value, and a head");
  return module;
}

}  // namespace petlab::trainer
