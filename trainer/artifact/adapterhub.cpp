// Pfeiffer adapters in the format of AdapterHub's library `adapters`: adapter_config.json,
// head_config.json and their weights.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "trainer/artifact/foreign_module.h"
#include "trainer/artifact/module_formats.h"
#include "trainer/files/error.h"
#include "trainer/modules/layer_weights.h"

namespace petlab::trainer {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr const char* kHubConfig = "adapter_config.json";
constexpr const char* kHubWeights = "pytorch_adapter.bin";
constexpr const char* kHubSafeWeights = "adapter.safetensors";
constexpr const char* kHeadConfigFile = "head_config.json";
constexpr const char* kHeadFile = "pytorch_model_head.bin";
constexpr const char* kSafeHeadFile = "model_head.safetensors";
// The release of the library whose format is written.
constexpr const char* kAdaptersVersion = "adapters.1.3.0";
const std::string kNoAdapter = "petlab's adapter has no counterpart";

/// A weight's name in petlab and in the library.
struct Name {
  const char* petlab_name;
  const char* library_name;
};
constexpr Name kNames[] = {{"down.weight", "adapter_down.0.weight"},
                           {"down.bias", "adapter_down.0.bias"},
                           {"up.weight", "adapter_up.weight"},
                           {"up.bias", "adapter_up.bias"}};

std::string class_of(const sweeps::BackboneShape& config, const char* rest) {
  return (config.model_type == "bert" ? "Bert" : "Roberta") + std::string(rest);
}

/// The factor from which the library computes this bottleneck. It rounds d_model / factor down, as
/// Python's // does, so a factor that is rounded up would lose one.
double reduction_factor(std::int64_t d_model, std::int64_t bottleneck) {
  const auto d = static_cast<double>(d_model);
  const auto bottleneck_from = [&](double factor) {
    return std::llround((d - std::fmod(d, factor)) / factor);
  };
  double factor = d / static_cast<double>(bottleneck);
  if (bottleneck_from(factor) < bottleneck) factor = std::nextafter(factor, 0.0);
  if (bottleneck_from(factor) != bottleneck) {
    throw Error(fmt::format("module.bottleneck is {}: no reduction factor of {} yields it",
                            bottleneck, d_model));
  }
  return factor;
}

ModuleFile json_file(const char* name, const ordered_json& fields) {
  return {name, ModuleFile::Kind::json, fields.dump(2) + "\n", {}, {}};
}

/// The head's files, as the library saves it. For RoBERTa, this is RoBERTa's own head class, which
/// models with and without exchangeable heads load. BERT's own class has its pooler in the
/// backbone, so only an exchangeable head can hold both layers.
std::vector<ModuleFile> head_files(const LayeredModule& module, const sweeps::BackboneShape& config,
                                   const ordered_json& about) {
  const LayeredHead& head = module.head;
  ordered_json label2id = ordered_json::object();
  for (std::size_t i = 0; i < head.labels.size(); ++i) label2id[head.labels[i]] = i;
  if (head.labels.empty()) label2id["LABEL_0"] = 0;
  ordered_json fields = about;
  ModuleFile weights{kHeadFile, ModuleFile::Kind::torch_pickle, {}, {}, kSafeHeadFile};
  std::string dense, out;
  if (config.model_type == "roberta") {
    fields["model_class"] = class_of(config, "ForSequenceClassification");
    fields["name"] = nullptr;
    fields["config"] = nullptr;
    fields["num_labels"] = head.outputs();
    fields["label2id"] = std::move(label2id);
    dense = "classifier.dense";
    out = "classifier.out_proj";
  } else {
    fields["config"] = ordered_json{{"head_type", "classification"},
                                    {"num_labels", head.outputs()},
                                    {"layers", 2},
                                    {"activation_function", "tanh"},
                                    {"label2id", std::move(label2id)},
                                    {"use_pooler", false},
                                    {"bias", true},
                                    {"dropout_prob", nullptr}};
    dense = "heads." + fields["name"].get<std::string>() + ".1";
    out = "heads." + fields["name"].get<std::string>() + ".4";
  }
  const auto add = [&](const std::string& name, const LayerTensor& tensor) {
    weights.tensors.push_back({name, tensor.shape, tensor.values});
  };
  add(dense + ".weight", head.dense_weight);
  add(dense + ".bias", head.dense_bias);
  add(out + ".weight", head.out_weight);
  add(out + ".bias", head.out_bias);
  return {std::move(weights), json_file(kHeadConfigFile, fields)};
}

/// The prefix of the library's weights for the adapter after a layer's feed-forward, up to
/// "adapter_down", under any of the names that releases have used.
std::string adapter_prefix(const ForeignTensors& tensors, const std::string& encoder,
                           const std::string& name, std::int64_t layer) {
  std::vector<std::string> tried;
  for (const char* place : {"adapters", "layer_text_task_adapters", "layer_text_lang_adapters"}) {
    for (const std::string& before : {encoder, std::string()}) {
      tried.push_back(fmt::format("{}encoder.layer.{}.output.{}.{}.", before, layer, place, name));
      if (tensors.contains(tried.back() + kNames[0].library_name)) return tried.back();
    }
  }
  throw Error(fmt::format("{}: has no tensor {}{}: petlab has an adapter in each layer",
                          tensors.source(), tried.front(), kNames[0].library_name));
}

ForeignTensors open_either(const std::filesystem::path& folder, const char* safe,
                           const char* pickled) {
  const auto file = folder / safe;
  return ForeignTensors(open_weights_file(std::filesystem::exists(file) ? file : folder / pickled));
}

/// Rejects settings that petlab's adapter does not support. Returns the scale of its output.
double read_adapter_fields(ForeignConfig& fields) {
  if (!fields.field("architecture").is_null()) {
    fields.refuse("architecture", "null", "petlab takes bottleneck adapters from this library");
  }
  const std::string act = fields.text("non_linearity", "");
  if (act != "relu" && act != "ReLU") fields.refuse("non_linearity", "\"relu\"", kNoAdapter);
  const auto required = [&](const char* key, bool wanted) {
    if (!fields.field(key).is_boolean() || fields.flag(key, wanted) != wanted) {
      fields.refuse(key, wanted ? "true" : "false", "petlab has Pfeiffer's placement only");
    }
  };
  required("mh_adapter", false);
  required("output_adapter", true);
  required("original_ln_before", true);
  required("original_ln_after", true);
  required("residual_before_ln", true);
  const json& scaling = fields.field("scaling");
  if (!scaling.is_null() && !scaling.is_number()) fields.refuse("scaling", "a number", kNoAdapter);
  const double scale = fields.number("scaling", 1);
  // These fields have no effect after training, or only together with other fields.
  fields.ignore({"reduction_factor", "init_weights", "init_weights_seed", "dropout",
                 "stochastic_depth", "adapter_residual_before_ln", "inv_adapter_reduction_factor",
                 "phm_dim", "factorized_phm_W", "shared_W_phm", "shared_phm_rule",
                 "factorized_phm_rule", "phm_c_init", "phm_init_range", "learn_phm",
                 "hypercomplex_nonlinearity", "phm_rank", "phm_bias", "cross_adapter"});
  fields.refuse_others(kNoAdapter);
  return scale;
}

/// The names of the head's layers, from its configuration; those of the backbone if it has none.
HeadNames head_names(ForeignConfig& config, const sweeps::BackboneShape& encoder) {
  const std::string name = config.text("name", "");
  const std::string model = config.text("model_class", "");
  const bool bert = encoder.model_type == "bert";
  if (config.field("config").is_null()) {
    const std::string wanted = class_of(encoder, "ForSequenceClassification");
    if (model != wanted) config.refuse("model_class", "\"" + wanted + "\"");
    HeadNames names = backbone_head_names(encoder, bert);
    if (!bert) names.dense = {"classifier.dense"};
    names.out = {bert ? "classifier" : "classifier.out_proj"};
    return names;
  }
  ForeignConfig head(config.name() + ": config", config.field("config"));
  if (head.text("head_type", "") != "classification") {
    head.refuse("head_type", "\"classification\"", "petlab classifies or scores sequences");
  }
  const double layers = head.number("layers", 0);
  const bool pooled = head.flag("use_pooler", false);
  head.require("bias", true, "petlab's head has one");
  head.ignore({"num_labels", "label2id", "dropout_prob", "activation_function"});
  const std::string parts = "heads." + name + ".";
  HeadNames names = backbone_head_names(encoder, true);
  if (layers == 2 && !pooled) {
    if (head.text("activation_function", "") != "tanh") {
      head.refuse("activation_function", "\"tanh\"", "petlab's head has no other");
    }
    names.backbone_dense.clear();
    names.dense = {parts + "1"};
    names.out = {parts + "4"};
  } else if (layers == 1 && pooled) {
    names.out = {parts + "1"};
  } else {
    head.refuse("layers", pooled ? "1 with use_pooler" : "2 without use_pooler",
                "petlab's head is a dense layer with tanh and an output layer");
  }
  names.backbone_out.clear();
  head.refuse_others("petlab's head has no counterpart");
  return names;
}

/// Names the head's outputs by label2id, which must name each of them. Without it, the labels stay
/// as they are.
void take_labels(LayeredHead& head, ForeignConfig config) {
  const json& map = config.field("label2id");
  if (map.is_null()) return;
  std::vector<std::string> labels = labels_of_label2id(config.all());
  if (std::ssize(labels) != head.outputs()) {
    config.refuse("label2id", fmt::format("a label for each of the head's outputs, 0 to {}",
                                          head.outputs() - 1));
  }
  // A regression head needs no label.
  if (!head.labels.empty()) head.labels = std::move(labels);
}

LayeredHead read_hub_head(const std::filesystem::path& folder, const ModuleBackbone& backbone) {
  const bool bert = backbone.shape.model_type == "bert";
  if (!std::filesystem::exists(folder / kHeadConfigFile)) {
    for (const char* const file : {kSafeHeadFile, kHeadFile}) {
      if (!std::filesystem::exists(folder / file)) continue;
      throw Error(fmt::format("{}: is missing, must describe the contents of {} next to it",
                              (folder / kHeadConfigFile).string(), file));
    }
    return read_head(nullptr, backbone_head_names(backbone.shape, bert), backbone);
  }
  ForeignConfig config = ForeignConfig::read(folder / kHeadConfigFile);
  const HeadNames names = head_names(config, backbone.shape);
  ForeignTensors tensors = open_either(folder, kSafeHeadFile, kHeadFile);
  LayeredHead head = read_head(&tensors, names, backbone);
  tensors.refuse_others("petlab's head is a dense layer with tanh and an output layer");
  // RoBERTa's own head class stores its labels at the top level.
  if (config.field("label2id").is_null() && config.field("config").is_object()) {
    take_labels(head, ForeignConfig(config.name() + ": config", config.field("config")));
  } else {
    take_labels(head, std::move(config));
  }
  return head;
}

}  // namespace

std::vector<ModuleFile> adapterhub_files(const LayeredModule& module,
                                         const sweeps::BackboneShape& config,
                                         const std::string& backbone) {
  // The library creates a submodule with this name, which must not contain dots.
  std::string name = module.head.task;
  std::replace(name.begin(), name.end(), '.', '_');
  ordered_json about{{"model_type", config.model_type == "bert" ? "bert" : "roberta"},
                     {"hidden_size", config.d_model},
                     {"model_name", backbone},
                     {"model_class", class_of(config, "AdapterModel")},
                     {"name", name},
                     {"version", kAdaptersVersion}};
  ordered_json fields = about;
  fields["config"] =
      ordered_json{{"mh_adapter", false},
                   {"output_adapter", true},
                   {"reduction_factor", reduction_factor(config.d_model, module.size)},
                   {"non_linearity", "relu"},
                   {"original_ln_before", true},
                   {"original_ln_after", true},
                   {"ln_before", false},
                   {"ln_after", false},
                   {"is_parallel", false},
                   {"scaling", 1.0},
                   {"use_gating", false},
                   {"residual_before_ln", true},
                   {"adapter_residual_before_ln", false},
                   {"inv_adapter", nullptr},
                   {"inv_adapter_reduction_factor", nullptr},
                   {"cross_adapter", false},
                   {"leave_out", ordered_json::array()},
                   {"dropout", 0.0},
                   {"phm_layer", false},
                   {"stochastic_depth", 0.0}};
  ModuleFile weights{kHubWeights, ModuleFile::Kind::torch_pickle, {}, {}, kHubSafeWeights};
  for (const LayerWeight& weight : layer_weights(module.kind, module.d_model, module.size)) {
    const LayerTensor& all = module.weights.at(std::string(weight.name));
    const auto n = static_cast<std::ptrdiff_t>(elements(weight.shape));
    const auto* const found = std::find_if(std::begin(kNames), std::end(kNames), [&](Name one) {
      return one.petlab_name == weight.name;
    });
    for (std::int64_t l = 0; l < module.layers; ++l) {
      const auto begin = all.values.begin() + l * n;
      weights.tensors.push_back({fmt::format("{}encoder.layer.{}.output.adapters.{}.{}",
                                             encoder_prefix(config), l, name, found->library_name),
                                 weight.shape,
                                 {begin, begin + n}});
    }
  }
  std::vector<ModuleFile> files{std::move(weights), json_file(kHubConfig, fields)};
  for (ModuleFile& file : head_files(module, config, about)) files.push_back(std::move(file));
  return files;
}

LayeredModule read_adapterhub(const std::filesystem::path& folder, const ModuleBackbone& backbone) {
  ForeignConfig config = ForeignConfig::read(folder / kHubConfig);
  const std::string name = config.text("name", "");
  if (name.empty()) config.refuse("name", "the adapter's name");
  if (!config.field("config").is_object()) config.refuse("config", "an object");
  ForeignConfig fields(config.name() + ": config", config.field("config"));
  const double scale = read_adapter_fields(fields);

  LayeredModule module;
  module.kind = kind_of_format("adapterhub");
  module.d_model = backbone.shape.d_model;
  module.layers = backbone.shape.encoder_layers;
  ForeignTensors tensors = open_either(folder, kHubSafeWeights, kHubWeights);
  const std::string encoder = encoder_prefix(backbone.shape);
  const auto& first =
      tensors.shape(adapter_prefix(tensors, encoder, name, 0) + kNames[0].library_name);
  module.size = first.empty() ? 0 : first.front();
  if (module.size < 1) {
    throw Error(fmt::format("{}: the adapter's bottleneck is {}, must be > 0", tensors.source(),
                            module.size));
  }
  const auto weights = layer_weights(module.kind, module.d_model, module.size);
  for (const LayerWeight& weight : weights) {
    LayerTensor& all = module.weights[std::string(weight.name)];
    all.shape = weight.shape;
    all.shape.insert(all.shape.begin(), module.layers);
  }
  for (std::int64_t l = 0; l < module.layers; ++l) {
    const std::string prefix = adapter_prefix(tensors, encoder, name, l);
    for (std::size_t i = 0; i < weights.size(); ++i) {
      std::vector<float> layer_values =
          tensors.take(prefix + kNames[i].library_name, weights[i].shape);
      // The library scales the adapter's output; petlab includes the scale in its weights.
      if (weights[i].name.starts_with("up.")) {
        for (float& value : layer_values) value = static_cast<float>(value * scale);
      }
      auto& values = module.weights.find(weights[i].name)->second.values;
      values.insert(values.end(), layer_values.begin(), layer_values.end());
    }
  }
  tensors.refuse_others("petlab has an adapter after each layer's feed-forward");
  module.head = read_hub_head(folder, backbone);
  return module;
}

}  // namespace petlab::trainer
