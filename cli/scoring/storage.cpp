#include "cli/scoring/storage.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <iostream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "base/nearest_word.h"
#include "cli/options/json_option.h"
#include "cli/scoring/configuration_file.h"
#include "metrics/published_backbones.h"
#include "metrics/storage.h"
#include "protocol/artifact_format.h"
#include "sweeps/backbone.h"
#include "sweeps/catalog.h"
#include "sweeps/fields.h"
#include "sweeps/locations.h"
#include "sweeps/trial_config.h"

namespace petlab::cli {
namespace {

using nlohmann::ordered_json;

/// Number of tasks in the paper's table 2; the default for a module without a configuration.
constexpr std::int64_t kGlueTasks = 8;

struct StorageOptions {
  std::string file;
  bool json = false;
  std::string backbone;
  std::optional<std::int64_t> d_model;
  std::optional<std::int64_t> layers;
  std::optional<std::int64_t> parameters;
  std::optional<std::int64_t> tasks;
  // Module fields under their configuration names; absent ones take the kind's default.
  std::string kind;
  bool share = false;
  bool share_given = false;
  std::string mask;
  std::optional<double> sparsity_ratio;
  std::map<std::string, std::int64_t> sizes;  // "rank"
};

// The backbone properties that storage formulas use.
struct Backbone {
  std::string name;
  std::int64_t d_model = 0;
  std::int64_t encoder_layers = 0;
  std::int64_t decoder_layers = 0;
  std::optional<std::int64_t> parameters;
  std::int64_t attention_width = 0;  // 0: d_model
  std::int64_t layers() const { return encoder_layers + decoder_layers; }
};

struct Bits {
  double values = 0;
  double masks = 0;
  double total() const { return values + masks; }
};

// The printed report. Members that do not apply are absent.
struct Report {
  std::string module;   // one line for people
  std::string formula;  // empty if the module has none
  ordered_json about = ordered_json::object();
  std::optional<Bits> bls;
  std::optional<Bits> stored;
  std::optional<std::uint64_t> positions;
  std::optional<std::uint64_t> head;
  std::optional<std::uint64_t> file_bytes;
  std::optional<std::int64_t> trained_parameters;
  std::optional<Backbone> backbone;
  std::int64_t tasks = 1;
};

Backbone from_shape(const std::string& name, const sweeps::BackboneShape& shape) {
  return {name,
          shape.d_model,
          shape.encoder_layers,
          shape.decoder_layers,
          shape.parameters(),
          shape.heads * shape.d_head};
}

// A folder with a config.json takes precedence over the paper's table, so that percentages match
// the trials that use it.
Backbone named_backbone(const std::string& name, const std::filesystem::path& relative_to) {
  const sweeps::Locations locations = sweeps::find_locations(sweeps::process_environment());
  const bool is_path = name.find('/') != std::string::npos;
  if (is_path || std::filesystem::exists(locations.models() / name)) {
    return from_shape(
        name, sweeps::read_backbone_shape(sweeps::backbone_folder(locations, name, relative_to)));
  }
  if (const auto* row = metrics::find_published_backbone(name)) {
    return {name, row->d_model, row->encoder_layers, row->decoder_layers, row->parameters};
  }
  std::vector<std::string_view> known;
  for (const auto& row : metrics::published_backbones()) known.push_back(row.name);
  throw std::invalid_argument(fmt::format("{} (or a folder under {}, or a path)",
                                          base::unknown_word("backbone", name, known),
                                          locations.models().string()));
}

std::optional<Backbone> backbone_of(const StorageOptions& options, const std::string& configured,
                                    const std::filesystem::path& relative_to) {
  if (options.d_model || options.layers || options.parameters) {
    if (!options.backbone.empty()) {
      throw std::invalid_argument(
          "found both --backbone and --d-model, --layers or --parameters, expected one of them");
    }
    if (!options.d_model || !options.layers) {
      throw std::invalid_argument("a backbone without a name needs --d-model and --layers");
    }
    return Backbone{"", *options.d_model, *options.layers, 0, options.parameters};
  }
  if (!options.backbone.empty()) {
    return named_backbone(options.backbone, std::filesystem::current_path());
  }
  if (!configured.empty()) return named_backbone(configured, relative_to);
  return std::nullopt;
}

Backbone required_backbone(std::optional<Backbone> backbone) {
  if (backbone) return *backbone;
  throw std::invalid_argument(
      "storage of a configuration requires --backbone, or --d-model and --layers");
}

std::int64_t required_parameters(const Backbone& backbone, std::string_view kind) {
  if (backbone.parameters) return *backbone.parameters;
  throw std::invalid_argument(
      fmt::format("storage of {} requires --backbone or --parameters", kind));
}

// The name of a size's field as an option: bottleneck, rank, prefix_length.
std::string name_of(const metrics::SizeName& size) {
  return size.field.substr(size.field.find('.') + 1);
}

void describe_module(const metrics::ModuleStorage& module, Report& report) {
  const std::string& kind = module.formula->kind;
  report.module = kind;
  report.about["kind"] = kind;
  for (std::size_t i = 0; i < module.formula->sizes.size(); ++i) {
    const std::string name = name_of(module.formula->sizes[i]);
    const std::int64_t value = i == 0 ? module.size : module.other_sizes[i - 1];
    report.module += fmt::format(", {} {}", name, value);
    report.about[name] = value;
  }
  if (!module.formula->per_model) {
    report.module +=
        fmt::format(", share {}, mask {}", module.share, metrics::to_string(module.mask));
    report.about["share"] = module.share;
    report.about["mask"] = metrics::to_string(module.mask);
  }
  if (module.mask != metrics::MaskKind::none) {
    report.module += fmt::format(", sparsity_ratio {}", module.sparsity_ratio);
    report.about["sparsity_ratio"] = module.sparsity_ratio;
  }
  report.about["d_model"] = module.d_model;
  report.about["layers"] = module.layers;
  report.about["tasks"] = module.tasks;
  report.tasks = module.tasks;
  report.formula = metrics::bls_formula(module);
  report.trained_parameters = metrics::trained_parameters(module);
  const metrics::StorageBits bls = metrics::bls_parts(module);
  report.bls = Bits{bls.values, bls.masks};
}

// For modules whose weights are all trained and all stored in 32 bits.
void describe_weights(std::string_view kind, std::int64_t weights, std::string_view formula,
                      Report& report) {
  report.module = kind;
  report.about["kind"] = kind;
  report.about["tasks"] = report.tasks;
  report.formula = formula;
  report.trained_parameters = weights;
  report.bls = Bits{32.0 * static_cast<double>(weights), 0};
  report.stored = report.bls;
}

// A trial's configuration, from options or a file.
struct Configuration {
  sweeps::TrialConfig trial;
  std::int64_t tasks = 1;
  std::filesystem::path folder;  // base of relative paths
};

void require_module(const sweeps::TrialConfig& config) {
  std::string problems;
  for (const sweeps::Problem& problem : sweeps::validate(config)) {
    // Storage depends neither on data nor on training.
    if (!problem.field.starts_with("module.")) continue;
    problems +=
        fmt::format("{}{} {}", problems.empty() ? "" : "; ", problem.field, problem.message);
  }
  if (!problems.empty()) throw std::invalid_argument(problems);
}

// Converts the options to a configuration file's `module`.
nlohmann::json module_json(const StorageOptions& options) {
  nlohmann::json module = {{"kind", options.kind}};
  if (options.share_given) module["share"] = options.share;
  if (!options.mask.empty()) module["mask"] = options.mask;
  if (options.sparsity_ratio) module["sparsity_ratio"] = *options.sparsity_ratio;
  for (const auto& [name, size] : options.sizes) module[name] = size;
  return module;
}

// Rejects options that the module does not use, so that none is silently ignored.
void require_active(const nlohmann::json& module, const sweeps::TrialConfig& config) {
  const nlohmann::json active = sweeps::to_json(config).at("module");
  for (const auto& [key, value] : module.items()) {
    if (active.contains(key)) continue;
    throw std::invalid_argument(fmt::format("--{} does not apply to kind {} with mask {}",
                                            option_name(key), config.module.kind,
                                            metrics::to_string(config.module.mask)));
  }
}

Configuration configuration_of(const StorageOptions& options) {
  Configuration configuration;
  if (options.file.empty()) {
    const nlohmann::json module = module_json(options);
    configuration.trial = sweeps::trial_config_from_json({{"module", module}});
    require_module(configuration.trial);
    require_active(module, configuration.trial);
    configuration.folder = std::filesystem::current_path();
  } else {
    const nlohmann::json fields = read_configuration_file(options.file);
    try {
      configuration.trial = sweeps::trial_config_from_json(fields);
      require_module(configuration.trial);
    } catch (const std::invalid_argument& error) {
      throw std::invalid_argument(fmt::format("{}: {}", options.file, error.what()));
    }
    configuration.folder = std::filesystem::absolute(options.file).parent_path();
  }
  auto declared = static_cast<std::int64_t>(configuration.trial.tasks.size());
  if (declared == 0) {
    const auto* const formula = sweeps::module_of(configuration.trial)->formula();
    const bool several = formula != nullptr && formula->per_model;
    declared = several && options.file.empty() ? kGlueTasks : 1;
  }
  configuration.tasks = options.tasks.value_or(declared);
  if (configuration.tasks < 1) {
    throw std::invalid_argument(fmt::format("--tasks is {}, must be > 0", configuration.tasks));
  }
  return configuration;
}

Report report_of_configuration(const StorageOptions& options) {
  const Configuration configuration = configuration_of(options);
  const std::string& kind = configuration.trial.module.kind;
  Report report;
  report.tasks = configuration.tasks;
  report.backbone =
      required_backbone(backbone_of(options, configuration.trial.backbone, configuration.folder));
  const sweeps::ModuleRow& row = *sweeps::find_module(kind);
  if (row.trains_backbone()) {
    describe_weights(kind, required_parameters(*report.backbone, kind), "32·parameters", report);
    return report;
  }
  if (row.formula() == nullptr) {
    describe_weights(kind, 0, "0 (the head is not counted)", report);
    return report;
  }
  if (row.declared->backbones == sweeps::ModuleBackbones::text_to_text &&
      report.backbone->decoder_layers == 0) {
    throw std::invalid_argument(
        fmt::format("{} needs a backbone with an encoder and a decoder", kind));
  }
  sweeps::BackboneShape shape;
  shape.d_model = report.backbone->d_model;
  shape.heads = 1;
  shape.d_head = report.backbone->attention_width > 0 ? report.backbone->attention_width
                                                      : report.backbone->d_model;
  shape.encoder_layers = report.backbone->layers();
  metrics::ModuleStorage module = sweeps::module_storage(configuration.trial, shape);
  module.tasks = configuration.tasks;
  describe_module(module, report);
  const double masks = report.bls->masks;
  report.stored = Bits{static_cast<double>(metrics::stored_bits(module)) - masks, masks};
  return report;
}

Report report_of_artifact(const StorageOptions& options) {
  const protocol::ArtifactStorage artifact = protocol::read_artifact_storage(options.file);
  Report report;
  report.about["trial"] = artifact.trial_id;
  if (artifact.module) {
    describe_module(*artifact.module, report);
  } else {
    report.module = "a kind of module without a storage formula";
  }
  report.stored =
      Bits{static_cast<double>(artifact.values_bits), static_cast<double>(artifact.masks_bits)};
  report.positions = artifact.positions_bits;
  report.head = artifact.head_bits;
  report.file_bytes = artifact.file_bytes;
  report.backbone = backbone_of(options, "", std::filesystem::current_path());
  return report;
}

// Bits are integers, except for only_mask where k·n is not.
ordered_json bits_json(double bits) {
  if (bits == std::floor(bits) && bits < 9e15) return static_cast<std::int64_t>(bits);
  return bits;
}

ordered_json parts_json(const Bits& bits) {
  return {{"values", bits_json(bits.values)}, {"masks", bits_json(bits.masks)}};
}

void print_json(const Report& report, std::ostream& out) {
  ordered_json json;
  json["bls_bits"] = report.bls ? bits_json(report.bls->total()) : ordered_json();
  if (report.bls) json["bls_parts"] = parts_json(*report.bls);
  json["stored_bits"] = bits_json(report.stored->total());
  json["stored_parts"] = parts_json(*report.stored);
  if (report.positions) {
    json["not_counted"] = {{"positions", *report.positions}, {"head", *report.head}};
    json["file_bytes"] = *report.file_bytes;
  }
  json["formula"] = report.formula.empty() ? ordered_json() : ordered_json(report.formula);
  if (report.trained_parameters) json["trained_parameters"] = *report.trained_parameters;
  json["module"] = report.about;
  if (report.backbone) {
    ordered_json backbone = {{"name", report.backbone->name},
                             {"d_model", report.backbone->d_model},
                             {"layers", report.backbone->layers()}};
    if (report.backbone->parameters) backbone["parameters"] = *report.backbone->parameters;
    json["backbone"] = backbone;
    if (report.backbone->parameters && report.bls) {
      const std::int64_t parameters = *report.backbone->parameters;
      const double bits = report.bls->total();
      json["bls_percent"] = metrics::bls_percent(bits, parameters);
      json["bls_percent_per_task"] = metrics::bls_percent(bits, parameters, report.tasks);
    }
  }
  out << json.dump(1) << "\n";
}

std::string bits_text(double bits) {
  return bits == std::floor(bits) ? fmt::format("{:.0f}", bits) : fmt::format("{:.2f}", bits);
}

std::string parts_text(const Bits& bits) {
  return fmt::format("{} (values {}, masks {})", bits_text(bits.total()), bits_text(bits.values),
                     bits_text(bits.masks));
}

void print_text(const Report& report, std::ostream& out) {
  const auto line = [&out](std::string_view name, const std::string& text) {
    out << fmt::format("{:<20}{}\n", name, text);
  };
  line("module", report.module);
  if (report.backbone) {
    const Backbone& backbone = *report.backbone;
    line("backbone",
         fmt::format("{}d_model {}, {} layers{}", backbone.name.empty() ? "" : backbone.name + ", ",
                     backbone.d_model, backbone.layers(),
                     backbone.parameters ? fmt::format(", {} parameters", *backbone.parameters)
                                         : std::string()));
  }
  if (report.tasks > 1) line("tasks", fmt::format("{}", report.tasks));
  if (!report.formula.empty()) line("formula", report.formula);
  if (report.bls) line("bls_bits", parts_text(*report.bls));
  line("stored_bits", parts_text(*report.stored));
  if (report.positions) {
    line("not counted",
         fmt::format("positions {}, head {} (bits)", *report.positions, *report.head));
    line("file", fmt::format("{} bytes", *report.file_bytes));
  }
  if (report.trained_parameters) {
    line("trained_parameters", fmt::format("{}", *report.trained_parameters));
  }
  if (report.backbone && report.backbone->parameters && report.bls) {
    const std::int64_t parameters = *report.backbone->parameters;
    const double bits = report.bls->total();
    std::string percent = fmt::format("{:.4f}", metrics::bls_percent(bits, parameters));
    if (report.tasks > 1) {
      percent +=
          fmt::format(", {:.4f} per task", metrics::bls_percent(bits, parameters, report.tasks));
    }
    line("bls_percent", percent);
  }
}

int run_storage(const StorageOptions& options, Streams streams) {
  const bool is_configuration = !options.file.empty() && is_configuration_file(options.file);
  const bool is_artifact = !options.file.empty() && !is_configuration;
  if (options.file.empty() == options.kind.empty()) {
    throw std::invalid_argument(
        "storage needs an artifact, a configuration file, or --kind with its options");
  }
  if (!options.file.empty()) {
    const nlohmann::json given = module_json(options);
    for (const auto& [key, value] : given.items()) {
      if (key == "kind") continue;
      throw std::invalid_argument(fmt::format("found both --{} and {}, expected one of them",
                                              option_name(key), options.file));
    }
  }
  if (is_artifact && options.tasks) {
    throw std::invalid_argument("--tasks does not apply to an artifact, which contains its tasks");
  }
  const Report report =
      is_artifact ? report_of_artifact(options) : report_of_configuration(options);
  if (options.json) {
    print_json(report, streams.out);
  } else {
    print_text(report, streams.out);
  }
  return kDone;
}

// An option for each size in the kinds' storage formulas.
void add_sizes(CLI::App& app, StorageOptions& options) {
  std::set<std::string> added;
  for (const sweeps::ModuleRow& row : sweeps::modules()) {
    if (row.formula() == nullptr || !row.catalog.empty()) continue;
    for (const metrics::SizeName& size : row.formula()->sizes) {
      const std::string name = name_of(size);
      if (!added.insert(name).second) continue;
      app.add_option_function<std::int64_t>(
          "--" + option_name(name),
          [&options, name](std::int64_t value) { options.sizes[name] = value; },
          std::string(sweeps::find_field(size.field)->help));
    }
  }
}

}  // namespace

std::function<int()> make_storage(CLI::App& app, Streams streams) {
  const auto options = std::make_shared<StorageOptions>();
  app.add_option("file", options->file,
                 "an artifact, or a trial's configuration (.yaml, .yml, .json)");
  add_json_option(app, options->json, "print JSON");
  app.add_option("--kind", options->kind, std::string(sweeps::find_field("module.kind")->wanted));
  add_sizes(app, *options);
  app.add_flag("--share,!--no-share", options->share, "one prototype for all layers");
  app.add_option("--mask", options->mask, "none, learned or random");
  app.add_option("--sparsity-ratio", options->sparsity_ratio, "fraction of ones in a mask");
  app.add_option("--tasks", options->tasks,
                 "number of tasks (default: the configuration's, or 1; hyperformer++ 8)");
  app.add_option("--backbone", options->backbone,
                 "its name, or the folder of its config.json, for sizes and percentages");
  app.add_option("--d-model", options->d_model, "hidden size of a backbone without a name");
  app.add_option("--layers", options->layers, "layers that carry a module");
  app.add_option("--parameters", options->parameters, "parameters of that backbone");
  return [&app, options, streams] {
    options->share_given = app.get_option("--share")->count() > 0;
    return run_storage(*options, streams);
  };
}

}  // namespace petlab::cli
