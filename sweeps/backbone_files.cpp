#include "sweeps/backbone_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/shallow_json.h"
#include "base/shown.h"
#include "sweeps/error.h"
#include "sweeps/fields.h"

namespace petlab::sweeps {

std::vector<std::string> shards_of(const std::filesystem::path& index_file) {
  nlohmann::json index;
  try {
    index = base::parse_shallow_json(base::read_file(index_file, 64 << 20), index_file.string());
  } catch (const nlohmann::json::exception&) {
    index = nullptr;
  }
  if (!index.is_object() || !index.contains("weight_map") || !index["weight_map"].is_object()) {
    throw Error(fmt::format("{}: found no weight_map, expected the index of a sharded checkpoint",
                            index_file.string()));
  }
  std::vector<std::string> shards;
  for (const auto& [tensor, shard] : index["weight_map"].items()) {
    const std::string name = shard.is_string() ? shard.get<std::string>() : "";
    if (name.empty() || name.find('/') != std::string::npos) {
      throw Error(fmt::format("{}: tensor {}: found {}, expected the name of a file next to it",
                              index_file.string(), tensor, base::shown(shard)));
    }
    shards.push_back(name);
  }
  std::sort(shards.begin(), shards.end());
  shards.erase(std::unique(shards.begin(), shards.end()), shards.end());
  return shards;
}

std::vector<std::string> weight_files(const std::filesystem::path& folder) {
  for (const std::string_view name : kWeightFiles) {
    std::error_code unreadable;
    if (!std::filesystem::is_regular_file(folder / name, unreadable)) continue;
    std::vector<std::string> files{std::string(name)};
    if (name.ends_with(".index.json")) {
      const std::vector<std::string> shards = shards_of(folder / name);
      files.insert(files.end(), shards.begin(), shards.end());
    }
    return files;
  }
  throw Error(fmt::format("{}: found no weights, expected {}", folder.string(),
                          "model.safetensors, pytorch_model.bin or the index of one in shards"));
}

}  // namespace petlab::sweeps
