#include "trainer/artifact/foreign_module.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/shallow_json.h"
#include "trainer/files/error.h"
#include "trainer/files/file_bytes.h"
#include "trainer/files/shallow_json.h"

namespace petlab::trainer {
namespace {

using nlohmann::json;

const json kNull;

bool is_off(const json& value) {
  return value.is_null() || value == json(false) || value == json("") ||
         (value.is_number() && value.get<double>() == 0) ||
         (value.is_structured() && value.empty());
}

std::string dumped(const json& value) {
  constexpr std::size_t kMost = 80;
  std::string text = value.dump(-1, ' ', false, json::error_handler_t::replace);
  if (text.size() > kMost) text = text.substr(0, kMost) + "…";
  return text;
}

std::vector<std::string> labels_in_order(std::vector<std::pair<double, std::string>> numbered) {
  std::sort(numbered.begin(), numbered.end());
  std::vector<std::string> labels;
  for (const auto& [number, label] : numbered) {
    if (number != static_cast<double>(labels.size())) return {};
    labels.push_back(label);
  }
  return labels;
}

LayerTensor take_tensor(ForeignTensors& from, const std::string& name,
                        const std::vector<std::int64_t>& shape) {
  return {name, shape, from.take(name, shape)};
}

}  // namespace

ForeignConfig::ForeignConfig(std::string name, const json& all)
    : name_(std::move(name)), all_(std::make_unique<json>(all)) {
  if (!all_->is_object()) {
    throw Error(fmt::format("{}: is {}, must be a JSON object", name_, dumped(*all_)));
  }
}

ForeignConfig::~ForeignConfig() = default;
ForeignConfig::ForeignConfig(ForeignConfig&&) noexcept = default;

ForeignConfig ForeignConfig::read(const std::filesystem::path& file) {
  const auto mapped = FileBytes::map(file);
  const auto bytes = mapped->bytes();
  return parse({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, file.string());
}

ForeignConfig ForeignConfig::parse(std::string_view text, const std::string& name) {
  return ForeignConfig(name, parse_shallow_json(text, name));
}

const json& ForeignConfig::field(std::string_view key) {
  known_.emplace(key);
  const auto found = all_->find(key);
  return found == all_->end() ? kNull : *found;
}

std::string ForeignConfig::text(std::string_view key, const std::string& otherwise) {
  const json& value = field(key);
  if (value.is_null()) return otherwise;
  if (!value.is_string()) refuse(key, "a text");
  return value.get<std::string>();
}

double ForeignConfig::number(std::string_view key, double otherwise) {
  const json& value = field(key);
  if (value.is_null()) return otherwise;
  if (!value.is_number() || !std::isfinite(value.get<double>())) refuse(key, "a number");
  return value.get<double>();
}

bool ForeignConfig::flag(std::string_view key, bool otherwise) {
  const json& value = field(key);
  if (value.is_null()) return otherwise;
  if (!value.is_boolean()) refuse(key, "true or false");
  return value.get<bool>();
}

void ForeignConfig::ignore(std::initializer_list<std::string_view> keys) {
  known_.insert(keys.begin(), keys.end());
}

void ForeignConfig::require(std::string_view key, const json& wanted, const std::string& why) {
  const json& value = field(key);
  if (!value.is_null() && value != wanted) refuse(key, dumped(wanted), why);
}

void ForeignConfig::refuse_others(const std::string& why) const {
  for (const auto& [key, value] : all_->items()) {
    if (known_.count(key) == 0 && !is_off(value)) refuse(key, "absent or switched off", why);
  }
}

void ForeignConfig::refuse(std::string_view key, const std::string& wanted,
                           const std::string& why) const {
  const auto found = all_->find(key);
  throw Error(fmt::format("{}: {} is {}, must be {}{}{}", name_, key,
                          found == all_->end() ? "absent" : dumped(*found), wanted,
                          why.empty() ? "" : ": ", why));
}

std::vector<std::string> labels_of_id2label(const json& config) {
  std::vector<std::pair<double, std::string>> numbered;
  const auto map = config.find("id2label");
  if (map == config.end() || !map->is_object()) return {};
  for (const auto& [number, label] : map->items()) {
    const json parsed = base::shallow_json_or_none(number);
    if (!parsed.is_number() || !label.is_string()) return {};
    numbered.emplace_back(parsed.get<double>(), label.get<std::string>());
  }
  return labels_in_order(std::move(numbered));
}

std::vector<std::string> labels_of_label2id(const json& config) {
  std::vector<std::pair<double, std::string>> numbered;
  const auto map = config.find("label2id");
  if (map == config.end() || !map->is_object()) return {};
  for (const auto& [label, number] : map->items()) {
    if (!number.is_number()) return {};
    numbered.emplace_back(number.get<double>(), label);
  }
  return labels_in_order(std::move(numbered));
}

ForeignTensors::ForeignTensors(StoredWeights weights) : weights_(std::move(weights)) {}

std::vector<std::string> ForeignTensors::names() const {
  std::vector<std::string> names;
  for (const auto& [name, entry] : weights_.tensors) names.push_back(name);
  return names;
}

bool ForeignTensors::contains(std::string_view name) const {
  return weights_.tensors.find(name) != weights_.tensors.end();
}

const TensorView& ForeignTensors::find(const std::string& name) const {
  const auto found = weights_.tensors.find(name);
  if (found == weights_.tensors.end()) {
    throw Error(fmt::format("{}: has no tensor {}", weights_.source, name));
  }
  return found->second.tensor;
}

const std::vector<std::int64_t>& ForeignTensors::shape(const std::string& name) const {
  return find(name).shape;
}

std::vector<float> ForeignTensors::take(const std::string& name,
                                        const std::vector<std::int64_t>& shape) {
  const TensorView& tensor = find(name);
  if (tensor.shape != shape) {
    throw Error(fmt::format("{}: tensor {} has the shape {}, must be {}", weights_.source, name,
                            shape_text(tensor.shape), shape_text(shape)));
  }
  taken_.insert(name);
  try {
    return to_floats(tensor);
  } catch (const Error& error) {
    throw Error(fmt::format("{}: tensor {}: {}", weights_.source, name, error.what()));
  }
}

void ForeignTensors::refuse_others(const std::string& why) const {
  for (const auto& [name, entry] : weights_.tensors) {
    if (taken_.count(name) == 0) {
      throw Error(fmt::format("{}: tensor {} cannot be imported: {}", weights_.source, name, why));
    }
  }
}

LayeredHead read_head(ForeignTensors* module, const HeadNames& names,
                      const ModuleBackbone& backbone) {
  ForeignTensors frozen(backbone.weights);
  const std::int64_t d = backbone.shape.d_model;
  struct Place {
    ForeignTensors* tensors;
    std::string name;
  };
  const auto find = [&](const std::string& part, const std::vector<std::string>& in_module,
                        const std::vector<std::string>& in_backbone) -> Place {
    for (const std::string& name : in_module) {
      if (module != nullptr && module->contains(name + ".weight")) return {module, name};
    }
    for (const std::string& name : in_backbone) {
      if (frozen.contains(name + ".weight")) return {&frozen, name};
    }
    std::vector<std::string> looked;
    const auto look = [&](const ForeignTensors& tensors, const std::vector<std::string>& at) {
      for (const std::string& name : at) looked.push_back(name + " in " + tensors.source());
    };
    if (module != nullptr) look(*module, in_module);
    look(frozen, in_backbone);
    throw Error(
        fmt::format("the head's {} is missing; looked for {}", part, fmt::join(looked, ", ")));
  };
  const Place dense = find("dense layer", names.dense, names.backbone_dense);
  const Place out = find("output layer", names.out, names.backbone_out);
  LayeredHead head;
  head.dense_weight = take_tensor(*dense.tensors, dense.name + ".weight", {d, d});
  head.dense_bias = take_tensor(*dense.tensors, dense.name + ".bias", {d});
  const std::vector<std::int64_t>& shape = out.tensors->shape(out.name + ".weight");
  const std::int64_t outputs = shape.empty() ? 0 : shape.front();
  if (outputs < 1) {
    throw Error(fmt::format("{}: tensor {}.weight has the shape {}, must have one row per output",
                            out.tensors->source(), out.name, shape_text(shape)));
  }
  head.out_weight = take_tensor(*out.tensors, out.name + ".weight", {outputs, d});
  head.out_bias = take_tensor(*out.tensors, out.name + ".bias", {outputs});
  if (outputs > 1) {
    head.labels = backbone.labels;
    if (std::ssize(head.labels) != outputs) {
      head.labels.clear();
      for (std::int64_t i = 0; i < outputs; ++i) head.labels.push_back(std::to_string(i));
    }
  }
  return head;
}

HeadNames backbone_head_names(const sweeps::BackboneShape& config, bool pooled) {
  const std::string encoder = config.model_type == "bert" ? "bert." : "roberta.";
  HeadNames names;
  names.backbone_dense = pooled ? std::vector<std::string>{encoder + "pooler.dense", "pooler.dense"}
                                : std::vector<std::string>{"classifier.dense"};
  names.backbone_out = {pooled ? "classifier" : "classifier.out_proj"};
  return names;
}

std::string encoder_prefix(const sweeps::BackboneShape& config) {
  return config.model_type == "bert" ? "bert." : "roberta.";
}

}  // namespace petlab::trainer
