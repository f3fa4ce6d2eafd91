#include "trainer/artifact/module_formats.h"

#include <fmt/format.h>

#include <array>
#include <stdexcept>

#include "protocol/artifact_format.h"
#include "trainer/artifact/foreign_module.h"
#include "trainer/files/error.h"

namespace petlab::trainer {
namespace {

constexpr std::array kFormats{
    ModuleFormat{"peft", "LoRA in the format of Hugging Face's PEFT", metrics::ModuleFamily::lora,
                 peft_files, read_peft},
    ModuleFormat{"adapterhub", "Pfeiffer adapters in the format of AdapterHub's library adapters",
                 metrics::ModuleFamily::adapter, adapterhub_files, read_adapterhub},
};

}  // namespace

ModuleBackbone open_module_backbone(const std::filesystem::path& folder) {
  ModuleBackbone backbone;
  backbone.folder = folder;
  backbone.config = read_encoder_config(folder);
  backbone.weights = open_weights(folder);
  const ForeignConfig config = ForeignConfig::read(folder / "config.json");
  backbone.labels = labels_of_id2label(config.all());
  return backbone;
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
                                     const EncoderConfig& config, const std::string& backbone) {
  if (module.family != format.family) {
    throw std::invalid_argument(fmt::format(
        "the artifact's module.kind is {}, must be {}: {} is {}", metrics::to_string(module.family),
        metrics::to_string(format.family), format.name, format.help));
  }
  if (module.d_model != config.d_model || module.layers != config.num_layers) {
    throw Error(fmt::format("{}: the backbone has {} layers of {}, must have the module's {} of {}",
                            backbone, config.num_layers, config.d_model, module.layers,
                            module.d_model));
  }
  return format.files(module, config, backbone);
}

}  // namespace petlab::trainer
