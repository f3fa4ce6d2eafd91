#include "trainer/backbones/stored_weights.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "trainer/files/error.h"
#include "trainer/files/file_bytes.h"
#include "trainer/files/safetensors.h"
#include "trainer/files/shallow_json.h"
#include "trainer/files/torch_file.h"

namespace petlab::trainer {
namespace {

constexpr std::string_view kIndexEnding = ".index.json";

StoredWeights open_sharded(const std::filesystem::path& index) {
  const auto mapped = FileBytes::map(index);
  const auto bytes = mapped->bytes();
  const auto weight_map = parse_shard_index(
      {reinterpret_cast<const char*>(bytes.data()), bytes.size()}, mapped->name());
  StoredWeights result;
  result.source = index.string();
  std::set<std::string> shards;
  for (const auto& [tensor, shard] : weight_map) shards.insert(shard);
  for (const std::string& shard : shards) {
    const std::filesystem::path file = index.parent_path() / shard;
    if (!std::filesystem::exists(file)) {
      throw Error(fmt::format("{}: is missing, but {} names it", file.string(), index.string()));
    }
    StoredWeights part = open_weights_file(file);
    for (auto& [tensor, entry] : part.tensors) {
      // A tensor is taken only from the shard that the index lists. Unlisted tensors are kept as
      // surplus.
      const auto listed = weight_map.find(tensor);
      if (listed == weight_map.end() || listed->second == shard) {
        result.tensors.insert_or_assign(tensor, std::move(entry));
      }
    }
  }
  for (const auto& [tensor, shard] : weight_map) {
    const auto found = result.tensors.find(tensor);
    const std::string file = (index.parent_path() / shard).string();
    if (found == result.tensors.end() || found->second.file != file) {
      throw Error(
          fmt::format("{}: has no tensor {}, but {} lists it there", file, tensor, index.string()));
    }
  }
  return result;
}

/// Translates to current names: the first BERT checkpoints named a norm's weights differently.
std::string modern_name(std::string_view name) {
  constexpr std::string_view kGamma = "LayerNorm.gamma";
  constexpr std::string_view kBeta = "LayerNorm.beta";
  if (name.ends_with(kGamma)) {
    return std::string(name.substr(0, name.size() - kGamma.size())) + "LayerNorm.weight";
  }
  if (name.ends_with(kBeta)) {
    return std::string(name.substr(0, name.size() - kBeta.size())) + "LayerNorm.bias";
  }
  return std::string(name);
}

}  // namespace

std::map<std::string, std::string> parse_shard_index(std::string_view text,
                                                     const std::string& file) {
  const nlohmann::json json = parse_shallow_json(text, file);
  if (!json.is_object() || !json.contains("weight_map") || !json["weight_map"].is_object()) {
    throw Error(fmt::format("{}: has no weight_map, expected an object of tensor: file", file));
  }
  std::map<std::string, std::string> result;
  for (const auto& [tensor, shard] : json["weight_map"].items()) {
    if (!shard.is_string()) {
      throw Error(fmt::format("{}: weight_map: tensor {}: the file is a {}, expected a string",
                              file, tensor, shard.type_name()));
    }
    const std::string name = shard.get<std::string>();
    // Only plain file names are allowed, so that shards stay inside the index's folder.
    if (name.empty() || name == "." || name == ".." ||
        name.find_first_of(std::string_view("/\\\0", 3)) != std::string::npos) {
      throw Error(fmt::format(
          "{}: weight_map: tensor {} is in '{}', expected a file in the index's own folder", file,
          tensor, name));
    }
    result.emplace(tensor, name);
  }
  return result;
}

StoredWeights open_weights_file(const std::filesystem::path& file) {
  const std::string name = file.filename().string();
  if (name.ends_with(kIndexEnding)) return open_sharded(file);
  StoredWeights result;
  result.source = file.string();
  if (name.ends_with(".safetensors")) {
    const SafetensorsFile safetensors = SafetensorsFile::open(file);
    for (const std::string& tensor : safetensors.names()) {
      result.tensors.emplace(tensor,
                             StoredWeights::Entry{safetensors.tensor(tensor), result.source});
    }
    return result;
  }
  if (name.ends_with(".bin") || name.ends_with(".pt") || name.ends_with(".pth")) {
    for (auto& [tensor, view] : read_torch_file(FileBytes::map(file))) {
      result.tensors.emplace(tensor, StoredWeights::Entry{std::move(view), result.source});
    }
    return result;
  }
  throw Error(fmt::format("{}: is not a checkpoint, expected *.safetensors, *.index.json or *.bin",
                          file.string()));
}

StoredWeights open_weights(const std::filesystem::path& folder) {
  for (const char* name : {"model.safetensors", "model.safetensors.index.json", "pytorch_model.bin",
                           "pytorch_model.bin.index.json"}) {
    if (std::filesystem::exists(folder / name)) return open_weights_file(folder / name);
  }
  throw Error(
      fmt::format("{}: found no weights, expected model.safetensors, model.safetensors.index.json, "
                  "pytorch_model.bin or pytorch_model.bin.index.json",
                  folder.string()));
}

BackboneWeights pick_weights(const StoredWeights& weights, std::span<const WantedTensor> wanted,
                             std::span<const std::string_view> prefixes,
                             std::span<const std::string_view> ignored) {
  std::string_view prefix;
  for (const std::string_view candidate : prefixes) {
    const auto first = weights.tensors.lower_bound(candidate);
    if (first != weights.tensors.end() && first->first.starts_with(candidate)) {
      prefix = candidate;
      break;
    }
  }
  // Maps names without prefix to entries. An entry with the prefix takes precedence over one
  // without.
  std::map<std::string, const StoredWeights::Entry*, std::less<>> entries;
  BackboneWeights result;
  for (const bool with_prefix : {true, false}) {
    for (const auto& [name, entry] : weights.tensors) {
      const bool has_prefix = !prefix.empty() && name.starts_with(prefix);
      if (has_prefix != with_prefix) continue;
      const std::string stripped =
          modern_name(has_prefix ? std::string_view(name).substr(prefix.size()) : name);
      if (!entries.emplace(stripped, &entry).second) result.unused.push_back(name);
    }
  }
  std::vector<std::string> missing;
  for (const WantedTensor& tensor : wanted) {
    const auto found = entries.find(tensor.name);
    if (found == entries.end()) {
      missing.push_back(tensor.name);
      continue;
    }
    const auto& [view, file] = *found->second;
    if (view.shape != tensor.shape) {
      throw Error(fmt::format("{}: tensor {}: found {}, expected {}", file, tensor.name,
                              shape_text(view.shape), shape_text(tensor.shape)));
    }
    if (view.dtype != DType::f32 && view.dtype != DType::f16 && view.dtype != DType::bf16) {
      throw Error(fmt::format("{}: tensor {}: dtype is {}, expected F32, F16 or BF16", file,
                              tensor.name, to_string(view.dtype)));
    }
    result.tensors.emplace(tensor.name, view);
    entries.erase(found);
  }
  if (!missing.empty()) {
    throw Error(fmt::format("{}: missing: {}", weights.source, fmt::join(missing, ", ")));
  }
  for (const auto& [name, entry] : entries) {
    const bool known =
        std::any_of(ignored.begin(), ignored.end(),
                    [&, stripped = name](auto start) { return stripped.starts_with(start); });
    if (!known) result.unused.push_back(name);
  }
  return result;
}

}  // namespace petlab::trainer
