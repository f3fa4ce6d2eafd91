#include "reports/derived.h"

#include <stdexcept>
#include <utility>

#include "metrics/published_backbones.h"
#include "metrics/storage.h"
#include "reports/selection.h"
#include "sweeps/catalog.h"
#include "sweeps/fields.h"

namespace petlab::reports {
namespace {

// The row of a trial's kind in the built-in catalog, or nullptr.
const sweeps::ModuleRow* row_of(const Trial& trial) {
  return sweeps::find_module(to_text(field_of(trial, "module_kind")));
}

std::optional<std::int64_t> size_in(const Trial& trial, std::string_view field) {
  const auto number = number_in(field_of(trial, std::string(sweeps::find_field(field)->column)));
  if (!number) return std::nullopt;
  return static_cast<std::int64_t>(*number);
}

// The properties of a trial's module for storage formulas; std::nullopt if none applies.
std::optional<metrics::ModuleStorage> storage_of(const Trial& trial) {
  const auto* backbone = metrics::find_published_backbone(to_text(field_of(trial, "backbone")));
  const sweeps::ModuleRow* const row = row_of(trial);
  if (backbone == nullptr || row == nullptr || row->formula() == nullptr) return std::nullopt;
  metrics::ModuleStorage result;
  result.formula = row->formula();
  const auto mask = row->has_field("module.mask")
                        ? metrics::mask_kind_from(to_text(field_of(trial, "module_mask")))
                        : metrics::MaskKind::none;
  if (!mask) return std::nullopt;
  result.d_model = backbone->d_model;
  result.layers = backbone->layers();
  result.share = number_in(field_of(trial, "module_share")).value_or(0) != 0;
  result.mask = *mask;
  result.sparsity_ratio = number_in(field_of(trial, "module_sparsity_ratio")).value_or(1);
  result.tasks = static_cast<std::int64_t>(trial.tasks.size());
  for (const metrics::SizeName& size : result.formula->sizes) {
    const auto number = size_in(trial, size.field);
    if (!number) return std::nullopt;
    const bool is_first = &size == &result.formula->sizes.front();
    (is_first ? result.size : result.other_sizes.emplace_back()) = *number;
  }
  return result;
}

// The percentage for trials without a module: all of the backbone, or none.
std::optional<double> percent_without_module(const Trial& trial) {
  const sweeps::ModuleRow* const row = row_of(trial);
  if (row == nullptr) return std::nullopt;
  // The backbone is stored once for all tasks.
  if (row->trains_backbone()) return 100 / static_cast<double>(trial.tasks.size());
  if (row->trains_head_only()) return 0;  // heads are not counted
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
