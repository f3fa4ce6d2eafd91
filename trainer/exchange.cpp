// `petlab-trainer export` and `import`: trained modules in the formats of other libraries.
#include <caffe2/serialize/inline_container.h>
#include <torch/csrc/jit/serialization/pickler.h>

#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <span>
#include <stdexcept>

#include "sweeps/backbone_files.h"
#include "sweeps/catalog.h"
#include "sweeps/identity.h"
#include "sweeps/locations.h"
#include "trainer/artifact/layered_module.h"
#include "trainer/artifact/module_formats.h"
#include "trainer/artifact/own_backbone.h"
#include "trainer/backbones/encoder_config.h"
#include "trainer/commands.h"
#include "trainer/compute/torch.h"
#include "trainer/files/error.h"
#include "trainer/files/file_bytes.h"
#include "trainer/files/safetensors.h"

namespace petlab::trainer {
namespace {

using nlohmann::json;

std::filesystem::path folder_of(const sweeps::Locations& locations, const std::string& backbone) {
  return sweeps::backbone_folder(locations, backbone, std::filesystem::current_path());
}

void write_bytes(const std::filesystem::path& file, std::span<const char> bytes) {
  const std::span<const std::byte> part = std::as_bytes(bytes);
  write_file_atomically(file, {&part, 1});
}

/// Returns the bytes that torch.save writes for a dict of tensors. torch::pickle_save tags the dict
/// with a type, which torch.load rejects unless told to trust the file.
std::vector<char> torch_pickle(const std::vector<LayerTensor>& tensors) {
  c10::Dict<std::string, Tensor> dict;
  for (const LayerTensor& tensor : tensors) {
    dict.insert(tensor.name, at::tensor(tensor.values, at::kFloat).view(tensor.shape));
  }
  std::vector<char> pickled;
  torch::jit::Pickler pickler(
      [&](const char* bytes, std::size_t n) { pickled.insert(pickled.end(), bytes, bytes + n); },
      nullptr, nullptr, nullptr, nullptr, /*tag_aggregates=*/false);
  pickler.protocol();
  pickler.pushIValue(dict);
  pickler.stop();
  std::vector<char> archive;
  caffe2::serialize::PyTorchStreamWriter writer([&](const void* bytes, std::size_t n) {
    const auto* const begin = static_cast<const char*>(bytes);
    archive.insert(archive.end(), begin, begin + n);
    return n;
  });
  writer.writeRecord("data.pkl", pickled.data(), pickled.size());
  std::size_t number = 0;
  for (const Tensor& tensor : pickler.tensorData()) {
    writer.writeRecord("data/" + std::to_string(number++), tensor.const_data_ptr(),
                       tensor.nbytes());
  }
  writer.writeEndOfFile();
  return archive;
}

void write_module_file(const std::filesystem::path& file, const ModuleFile& content) {
  switch (content.kind) {
    case ModuleFile::Kind::json:
      return write_bytes(file, content.json);
    case ModuleFile::Kind::safetensors: {
      std::vector<std::pair<std::string, TensorView>> tensors;
      for (const LayerTensor& tensor : content.tensors) {
        const std::span<const float> values(tensor.values);
        tensors.emplace_back(tensor.name,
                             TensorView{DType::f32, tensor.shape, std::as_bytes(values), nullptr});
      }
      // Hugging Face's readers require the name of the framework.
      return write_safetensors(file, tensors, {{"format", "pt"}});
    }
    case ModuleFile::Kind::torch_pickle:
      return write_bytes(file, torch_pickle(content.tensors));
  }
  throw std::logic_error("a kind of file without a writer");
}

std::string counted(std::size_t n, const std::string& noun) {
  return std::to_string(n) + " " + noun + (n == 1 ? "" : "s");
}

std::string summary(const LayeredModule& module) {
  const LayeredHead& head = module.head;
  std::string text = counted(static_cast<std::size_t>(module.layers), "layer") + " of size " +
                     std::to_string(module.size) + ", head of " + head.task + ": ";
  if (head.labels.empty()) return text + "a score";
  for (std::size_t i = 0; i < head.labels.size(); ++i) text += (i > 0 ? ", " : "") + head.labels[i];
  return text;
}

/// The name of an imported module's task if the user gives none.
constexpr const char* kImportedTask = "imported";

/// Returns the task that the user named: built-in, or declared in a file.
sweeps::TaskDeclaration named_task(const std::string& name) {
  if (const sweeps::TaskDeclaration* const found = sweeps::find_task(name)) return *found;
  if (name.find('/') != std::string::npos || name.ends_with(".yaml") || name.ends_with(".yml")) {
    return sweeps::load_task(name);
  }
  throw std::invalid_argument("--task is " + name +
                              ", must be a built-in task or the file of a declaration");
}

bool has_generic_labels(const std::vector<std::string>& labels) {
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const std::string number = std::to_string(i);
    if (labels[i] != number && labels[i] != "LABEL_" + number) return false;
  }
  return true;
}

/// Assigns the task to the head. The task's classes must be the head's outputs, in the same order.
void assign_task(LayeredHead& head, const std::string& name) {
  if (name.empty()) {
    head.task = kImportedTask;
    return;
  }
  const sweeps::TaskDeclaration task = named_task(name);
  const bool fits = task.classes.size() == head.labels.size() &&
                    (task.classes == head.labels || has_generic_labels(head.labels));
  if (!fits) {
    throw Error("the module's head has the outputs " + outputs_in_words(head.labels) + ", task " +
                task.name + " needs " + outputs_in_words(task.classes));
  }
  head.task = task.name;
  head.labels = task.classes;
}

}  // namespace

namespace {

/// Exports a fully fine-tuned backbone as a Hugging Face folder: the weights by name, and the other
/// files unchanged. Its heads are not exported.
int export_backbone(const Artifact& artifact, const sweeps::TrialConfig& config,
                    const std::filesystem::path& backbone, const std::filesystem::path& out) {
  if (!sweeps::module_of(config)->trains_backbone()) {
    throw std::invalid_argument("--format " + std::string(kBackboneFormat) +
                                " needs an artifact whose backbone was trained, found " +
                                config.module.kind);
  }
  std::error_code failed;
  if (std::filesystem::exists(out, failed) && !std::filesystem::is_empty(out, failed)) {
    throw Error(out.string() + ": contains files, must be a new or empty folder");
  }
  std::filesystem::create_directories(out, failed);
  if (failed) throw Error(out.string() + ": cannot be created: " + failed.message());
  std::vector<std::pair<std::string, TensorView>> tensors;
  for (const ArtifactTensor& tensor : artifact.values) {
    const std::span<const float> values(tensor.values.data(), tensor.values.size());
    tensors.emplace_back(tensor.name,
                         TensorView{DType::f32, tensor.shape, std::as_bytes(values), nullptr});
  }
  write_safetensors(out / "model.safetensors", tensors, {{"format", "pt"}});
  // Writes config.json, the first in the list, last: an incomplete folder is then not taken for a
  // backbone.
  for (auto name = sweeps::kBackboneFiles.rbegin(); name != sweeps::kBackboneFiles.rend(); ++name) {
    if (!std::filesystem::exists(backbone / *name)) continue;
    const auto bytes = FileBytes::map(backbone / *name);
    const std::span<const std::byte> part = bytes->bytes();
    write_file_atomically(out / *name, {&part, 1});
  }
  std::cout << out.string() << ": a backbone, " << counted(tensors.size(), "tensor") << std::endl;
  return 0;
}

}  // namespace

int run_export(const ExportOptions& options) {
  const bool is_backbone = options.format == kBackboneFormat;
  const ModuleFormat* const format =
      is_backbone ? nullptr : &module_format(options.format, kBackboneFormat);
  const Artifact artifact = read_artifact(options.artifact);
  const sweeps::TrialConfig config = sweeps::trial_config_from_json(json::parse(artifact.config));
  const std::string backbone = options.backbone.empty() ? config.backbone : options.backbone;
  const sweeps::Locations locations = sweeps::find_locations(sweeps::process_environment());
  const auto folder = folder_of(locations, backbone);
  if (is_backbone) {
    require_own_backbone(artifact, folder, locations.cache());
    return export_backbone(artifact, config, folder, options.out);
  }
  const LayeredModule module = layered_module(artifact, config, options.task);
  require_own_backbone(artifact, folder, locations.cache());
  const std::vector<ModuleFile> files =
      module_files(*format, module, sweeps::read_backbone_shape(folder), folder.string());
  for (const ModuleFile& file : files) {
    if (file.preferred.empty() || !std::filesystem::exists(options.out / file.preferred)) continue;
    throw Error((options.out / file.preferred).string() +
                ": exists, and would be read instead of the exported " + file.name +
                ": remove it, or export to another folder");
  }
  std::error_code failed;
  std::filesystem::create_directories(options.out, failed);
  if (failed) throw Error(options.out.string() + ": cannot be created: " + failed.message());
  for (const ModuleFile& file : files) write_module_file(options.out / file.name, file);
  std::cout << options.out.string() << ": " << format->name << ", " << summary(module) << std::endl;
  return 0;
}

int run_import(const ImportOptions& options) {
  const ModuleFormat& format = module_format(options.format);
  const sweeps::Locations locations = sweeps::find_locations(sweeps::process_environment());
  const auto folder = folder_of(locations, options.backbone);
  const ModuleBackbone backbone = open_module_backbone(folder);
  LayeredModule module = read_module(format, options.from, backbone);
  assign_task(module.head, options.task);
  const bool is_path = options.backbone.find('/') != std::string::npos;
  Artifact artifact = unshared_artifact(
      module, is_path ? std::filesystem::canonical(folder).string() : options.backbone,
      backbone.shape.model_type == "modernbert" ? backbone.shape.max_positions
                                                : read_encoder_config(folder).max_tokens());
  sweeps::FileDigests digests(locations.cache());
  artifact.backbone_digest = sweeps::backbone_digest(folder, digests);
  write_artifact(options.out, artifact);
  std::cout << options.out.string() << ": " << format.name << ", " << summary(module) << std::endl;
  return 0;
}

}  // namespace petlab::trainer
