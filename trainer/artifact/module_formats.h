#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "metrics/storage.h"
#include "trainer/artifact/layered_module.h"
#include "trainer/backbones/encoder_config.h"
#include "trainer/backbones/stored_weights.h"

namespace petlab::trainer {

/// The backbone that a module of another library was trained on.
struct ModuleBackbone {
  std::filesystem::path folder;
  EncoderConfig config;
  StoredWeights weights;            // its pooler and classifier may be the module's head
  std::vector<std::string> labels;  // id2label of its config.json; empty where it has none
};
/// Reads config.json and maps the weights. Throws Error as read_encoder_config and open_weights.
ModuleBackbone open_module_backbone(const std::filesystem::path& folder);

/// A file of a module in another library's format.
struct ModuleFile {
  enum class Kind { json, safetensors, torch_pickle };
  std::string name;
  Kind kind = Kind::json;
  std::string json;                  // a JSON file's text
  std::vector<LayerTensor> tensors;  // the others' content
  std::string preferred;             // a file that readers take instead where both are there
};

/// A row of the table of formats (docs/guides/use-a-trained-module.md).
struct ModuleFormat {
  std::string_view name;
  std::string_view help;
  metrics::ModuleFamily family;
  /// The module's files for a backbone of `config` that the artifact calls `backbone`.
  std::vector<ModuleFile> (*files)(const LayeredModule& module, const EncoderConfig& config,
                                   const std::string& backbone);
  /// Reads a folder. The head's task has no name yet. Throws Error naming the file and the field or
  /// tensor, for whatever petlab's module of that family cannot do too.
  LayeredModule (*read)(const std::filesystem::path& folder, const ModuleBackbone& backbone);
};

/// peft, adapterhub.
std::span<const ModuleFormat> module_formats();
/// Throws std::invalid_argument naming the formats that there are, and `also`, which the caller has
/// besides.
const ModuleFormat& module_format(std::string_view name, std::string_view also = {});

/// The module's files, as `format` has them. Throws std::invalid_argument where the module is of
/// another family, Error where it does not fit the backbone.
std::vector<ModuleFile> module_files(const ModuleFormat& format, const LayeredModule& module,
                                     const EncoderConfig& config, const std::string& backbone);

std::vector<ModuleFile> peft_files(const LayeredModule& module, const EncoderConfig& config,
                                   const std::string& backbone);
LayeredModule read_peft(const std::filesystem::path& folder, const ModuleBackbone& backbone);
std::vector<ModuleFile> adapterhub_files(const LayeredModule& module, const EncoderConfig& config,
                                         const std::string& backbone);
LayeredModule read_adapterhub(const std::filesystem::path& folder, const ModuleBackbone& backbone);

}  // namespace petlab::trainer
