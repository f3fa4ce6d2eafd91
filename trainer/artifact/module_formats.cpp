#include "trainer/artifact/module_formats.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <stdexcept>

#include "protocol/artifact_format.h"
#include "sweeps/catalog.h"
#include "trainer/artifact/foreign_module.h"
#include "trainer/files/error.h"

namespace petlab::trainer {
namespace {

constexpr std::array kFormats{
    ModuleFormat{"peft", "LoRA in the format of Hugging Face's PEFT", "bert roberta modernbert",
                 peft_files, read_peft},
    ModuleFormat{"adapterhub", "Pfeiffer adapters in the format of AdapterHub's library adapters",
                 "bert roberta", adapterhub_files, read_adapterhub},
};

void require_backbone(const ModuleFormat& format, const sweeps::BackboneShape& shape,
                      const std::string& backbone) {
  const std::string all = fmt::format(" {} ", format.model_types);
  if (all.find(" " + shape.model_type + " ") != std::string::npos) return;
  throw Error(fmt::format("{}: model_type is {}, must be one of these with --format {}: {}",
                          backbone, shape.model_type, format.name, format.model_types));
}

}  // namespace

ModuleBackbone open_module_backbone(const std::filesystem::path& folder) {
  ModuleBackbone backbone;
  backbone.folder = folder;
  backbone.shape = sweeps::read_backbone_shape(folder);
  backbone.weights = open_weights(folder);
  const ForeignConfig config = ForeignConfig::read(folder / "config.json");
  backbone.labels = labels_of_id2label(config.all());
  return backbone;
}

std::string kind_of_format(std::string_view format) {
  for (const sweeps::ModuleRow& row : sweeps::modules()) {
    const std::vector<std::string>& formats = row.declared->formats;
    if (std::find(formats.begin(), formats.end(), format) != formats.end()) {
      return std::string(row.kind);
    }
  }
  throw std::logic_error(fmt::format("no kind of module has the format {}", format));
}

std::span<const ModuleFormat> module_formats() { return kFormats; }

const ModuleFormat& module_format(std::string_view name, std::string_view also) {
  std::string known;
  for (const ModuleFormat& format : kFormats) {
    if (format.name == name) return format;
    known += (known.empty() ? "" : ", ") + std::string(format.name);
  }
  if (!also.empty()) known += ", " + std::string(also);
  throw std::invalid_argument(fmt::format("--format is {}, must be one of {}", name, known));
}

std::vector<ModuleFile> module_files(const ModuleFormat& format, const LayeredModule& module,
                                     const sweeps::BackboneShape& config,
                                     const std::string& backbone) {
  if (const std::string kind = kind_of_format(format.name); module.kind != kind) {
    throw std::invalid_argument(
        fmt::format("the artifact's module.kind is {}, must be {}: {} is {}", module.kind, kind,
                    format.name, format.help));
  }
  require_backbone(format, config, backbone);
  if (module.d_model != config.d_model || module.layers != config.encoder_layers) {
    throw Error(fmt::format("{}: the backbone has {} layers of {}, must have the module's {} of {}",
                            backbone, config.encoder_layers, config.d_model, module.layers,
                            module.d_model));
  }
  return format.files(module, config, backbone);
}

LayeredModule read_module(const ModuleFormat& format, const std::filesystem::path& folder,
                          const ModuleBackbone& backbone) {
  require_backbone(format, backbone.shape, backbone.folder.string());
  return format.read(folder, backbone);
}

}  // namespace petlab::trainer
