#include "reports/derived.h"

#include <stdexcept>
#include <utility>

#include "metrics/published_backbones.h"
#include "metrics/storage.h"
#include "reports/selection.h"

namespace petlab::reports {
namespace {

// The properties of a trial's module for storage formulas; std::nullopt if none applies.
std::optional<metrics::ModuleStorage> storage_of(const Trial& trial) {
  const auto* backbone = metrics::find_published_backbone(to_text(field_of(trial, "backbone")));
  if (backbone == nullptr) return std::nullopt;
  metrics::ModuleStorage result;
  const char* size = nullptr;
  const std::string kind = to_text(field_of(trial, "module_kind"));
  using metrics::ModuleFamily;
  for (const auto& [family, field] : {std::pair(ModuleFamily::adapter, "module_bottleneck"),
                                      std::pair(ModuleFamily::lora, "module_rank"),
                                      std::pair(ModuleFamily::prefix, "module_prefix_length"),
                                      std::pair(ModuleFamily::hypernetwork, "module_bottleneck")}) {
    if (kind != metrics::to_string(family)) continue;
    result.family = family;
    size = field;
  }
  if (size == nullptr) return std::nullopt;
  const bool is_hypernetwork = result.family == ModuleFamily::hypernetwork;
  const auto mask = is_hypernetwork
                        ? metrics::MaskKind::none  // has no mask field
                        : metrics::mask_kind_from(to_text(field_of(trial, "module_mask")));
  const auto number = number_in(field_of(trial, size));
  if (!mask || !number) return std::nullopt;
  result.d_model = backbone->d_model;
  result.layers = backbone->layers();
  result.size = static_cast<std::int64_t>(*number);
  result.share = number_in(field_of(trial, "module_share")).value_or(0) != 0;
  result.mask = *mask;
  result.sparsity_ratio = number_in(field_of(trial, "module_sparsity_ratio")).value_or(1);
  result.tasks = static_cast<std::int64_t>(trial.tasks.size());
  if (is_hypernetwork) {
    const auto size_of = [&](const char* field) {
      return static_cast<std::int64_t>(number_in(field_of(trial, field)).value_or(0));
    };
    result.hypernetwork = {size_of("module_hyper_embedding"), size_of("module_hyper_hidden"),
                           size_of("module_hyper_projected")};
  }
  return result;
}

// The percentage for trials without a module: all of the backbone, or none.
std::optional<double> percent_without_module(const Trial& trial) {
  const std::string kind = to_text(field_of(trial, "module_kind"));
  // The backbone is stored once for all tasks.
  if (kind == "full_finetuning") return 100 / static_cast<double>(trial.tasks.size());
  if (kind == "head_only") return 0;  // heads are not counted
  return std::nullopt;
}

}  // namespace

std::optional<double> bls_percent(const Trial& trial, const BackboneParameters& parameters) {
  if (const auto given = number_in(field_of(trial, "bls_percent"))) return given;
  if (const auto percent = percent_without_module(trial)) return percent;
  const auto bits = number_in(field_of(trial, "bls_bits"));
  if (!bits) return std::nullopt;
  const auto count = parameters(to_text(field_of(trial, "backbone")));
  if (!count) return std::nullopt;
  return metrics::bls_percent(*bits, *count) / static_cast<double>(trial.tasks.size());
}

std::optional<double> ft_params_percent(const Trial& trial) {
  if (const auto percent = percent_without_module(trial)) return percent;
  const auto module = storage_of(trial);
  if (!module) return std::nullopt;
  const auto* backbone = metrics::find_published_backbone(to_text(field_of(trial, "backbone")));
  try {
    return metrics::parameters_percent(metrics::trained_parameters(*module), backbone->parameters,
                                       module->tasks);
  } catch (const std::invalid_argument&) {
    return std::nullopt;  // there is no formula for this shape
  }
}

std::optional<std::string> bls_formula(const Trial& trial) {
  const auto module = storage_of(trial);
  if (!module) return std::nullopt;
  try {
    return metrics::bls_formula(*module);
  } catch (const std::invalid_argument&) {
    return std::nullopt;
  }
}

bool is_derived(const std::string& field) {
  return field == "bls_percent" || field == "ft_params_percent" || field == "bls_formula";
}

}  // namespace petlab::reports
