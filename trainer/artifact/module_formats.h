#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sweeps/backbone.h"
#include "trainer/artifact/layered_module.h"
#include "trainer/backbones/stored_weights.h"

namespace petlab::trainer {

/// The backbone that another library's module was trained on.
struct ModuleBackbone {
  std::filesystem::path folder;
  sweeps::BackboneShape shape;
  StoredWeights weights;            // may include the module's head: pooler and classifier
  std::vector<std::string> labels;  // id2label of config.json; empty without it
};
/// Reads config.json and maps the weights. Throws Error as read_backbone_shape and
/// open_weights.
ModuleBackbone open_module_backbone(const std::filesystem::path& folder);

/// A file of a module in another library's format.
struct ModuleFile {
  enum class Kind { json, safetensors, torch_pickle };
  std::string name;
  Kind kind = Kind::json;
  std::string json;                  // text of a JSON file
  std::vector<LayerTensor> tensors;  // content of other files
  std::string preferred;             // readers prefer this file if both exist
};

/// A row of the table of formats (docs/guides/use-a-trained-module.md).
struct ModuleFormat {
  std::string_view name;
  std::string_view help;
  std::string_view model_types;  // of the backbones, separated by spaces
  /// Returns the module's files, for a backbone of `config` with the artifact's name `backbone`.
  std::vector<ModuleFile> (*files)(const LayeredModule& module, const sweeps::BackboneShape& config,
                                   const std::string& backbone);
  /// Reads a folder. The head's task has no name yet. Throws Error, with the file and the field or
  /// tensor, for features that petlab's module of that kind lacks.
  LayeredModule (*read)(const std::filesystem::path& folder, const ModuleBackbone& backbone);
};

/// The kind of module that a format has: the one whose row of the catalog names it.
std::string kind_of_format(std::string_view format);

/// The formats: peft, adapterhub.
std::span<const ModuleFormat> module_formats();
/// Returns a format. Throws std::invalid_argument with the existing formats and `also`, a further
/// one that the caller supports.
const ModuleFormat& module_format(std::string_view name, std::string_view also = {});

/// Returns the module's files in `format`. Throws std::invalid_argument for a module of another
/// kind, and Error if it does not fit the backbone or the format has no such backbone.
std::vector<ModuleFile> module_files(const ModuleFormat& format, const LayeredModule& module,
                                     const sweeps::BackboneShape& config,
                                     const std::string& backbone);

/// Reads a module of `format` from a folder. Throws Error as its `read`, and if the format has no
/// such backbone.
LayeredModule read_module(const ModuleFormat& format, const std::filesystem::path& folder,
                          const ModuleBackbone& backbone);

std::vector<ModuleFile> peft_files(const LayeredModule& module, const sweeps::BackboneShape& config,
                                   const std::string& backbone);
LayeredModule read_peft(const std::filesystem::path& folder, const ModuleBackbone& backbone);
std::vector<ModuleFile> adapterhub_files(const LayeredModule& module,
                                         const sweeps::BackboneShape& config,
                                         const std::string& backbone);
LayeredModule read_adapterhub(const std::filesystem::path& folder, const ModuleBackbone& backbone);

}  // namespace petlab::trainer
