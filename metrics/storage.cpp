#include "metrics/storage.h"

#include <fmt/format.h>

#include <stdexcept>
#include <vector>

namespace petlab::metrics {
namespace {

void require_positive(std::string_view field, std::int64_t value) {
  if (value <= 0) throw std::invalid_argument(fmt::format("{} is {}, must be > 0", field, value));
}

void require_storage(const ModuleStorage& module) {
  if (module.d_model != 0) require_positive("d_model", module.d_model);
  require_positive("layers", module.layers);
  require_positive("tasks", module.tasks);
  const StorageFormula& formula = *module.formula;
  if (!formula.sizes.empty()) require_positive(formula.sizes.front().field, module.size);
  for (std::size_t i = 1; i < formula.sizes.size(); ++i) {
    const std::int64_t value = module.other_sizes.at(i - 1);  // 0 for a switch
    if (value < 0) {
      throw std::invalid_argument(
          fmt::format("{} is {}, must be >= 0", formula.sizes[i].field, value));
    }
  }
  if (formula.per_model && (module.share || module.mask != MaskKind::none)) {
    throw std::invalid_argument(
        fmt::format("{} is neither shared nor masked: share is {}, mask is {}", formula.kind,
                    module.share, to_string(module.mask)));
  }
  if (module.mask == MaskKind::none) return;
  if (!(module.sparsity_ratio > 0 && module.sparsity_ratio <= 1)) {
    throw std::invalid_argument(
        fmt::format("sparsity_ratio is {}, must be in (0, 1]", module.sparsity_ratio));
  }
  if (!module.share && module.tasks > 1) {
    throw std::invalid_argument(
        fmt::format("there is no storage formula for masked, unshared modules with {} tasks: share "
                    "is false, must be true with a mask and several tasks",
                    module.tasks));
  }
}

// Number of masks of a shared prototype: one per layer and, with several tasks, one per task.
std::int64_t masks_of_prototype(const ModuleStorage& module) {
  return module.layers + (module.tasks > 1 ? module.tasks : 0);
}

std::int64_t attention_width(const ModuleStorage& module) {
  return module.attention_width > 0 ? module.attention_width : module.d_model;
}

SizeValues values_of(const ModuleStorage& module) {
  SizeValues values{{"L", module.layers}, {"T", module.tasks}};
  if (module.d_model > 0) {
    values.insert(values.end(), {{"d", module.d_model}, {"w", attention_width(module)}});
  }
  const std::vector<SizeName>& sizes = module.formula->sizes;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    values.emplace_back(sizes[i].name, i == 0 ? module.size : module.other_sizes[i - 1]);
  }
  for (const auto& [name, number] : module.numbers) values.emplace_back(name, number);
  return values;
}

// Number of modules of module_size().
std::int64_t modules_of(const ModuleStorage& module) {
  return module.share || module.formula->per_model ? 1 : module.layers;
}

constexpr std::int64_t kValueBits = 32;

}  // namespace

std::string_view to_string(MaskKind mask) {
  switch (mask) {
    case MaskKind::none:
      return "none";
    case MaskKind::learned:
      return "learned";
    case MaskKind::random:
      return "random";
  }
  return "none";
}

std::string_view to_string(MaskCombination combination) {
  switch (combination) {
    case MaskCombination::or_:
      return "or";
    case MaskCombination::and_:
      return "and";
    case MaskCombination::add:
      break;
  }
  return "add";
}

std::optional<MaskCombination> mask_combination_from(std::string_view text) {
  for (const MaskCombination combination :
       {MaskCombination::or_, MaskCombination::and_, MaskCombination::add}) {
    if (text == to_string(combination)) return combination;
  }
  return std::nullopt;
}

std::optional<MaskKind> mask_kind_from(std::string_view text) {
  for (const MaskKind mask : {MaskKind::none, MaskKind::learned, MaskKind::random}) {
    if (text == to_string(mask)) return mask;
  }
  return std::nullopt;
}

std::int64_t zeros_in_mask(double sparsity_ratio, std::int64_t n) {
  return static_cast<std::int64_t>((1.0 - sparsity_ratio) * static_cast<double>(n));
}

ModuleSize module_size(const ModuleStorage& module) {
  require_storage(module);
  const SizeValues values = values_of(module);
  std::int64_t weights = 0;
  for (const SizeFormula& matrix : module.formula->weights) weights += matrix.value(values);
  return {weights, module.formula->biases.value(values)};
}

StorageBits bls_parts(const ModuleStorage& module) {
  const ModuleSize size = module_size(module);
  const auto weights = static_cast<double>(size.weights);
  const auto biases = static_cast<double>(size.biases);
  const auto modules = static_cast<double>(modules_of(module));
  if (module.share) {
    const bool masked = module.mask != MaskKind::none;
    return {kValueBits * (weights + biases),
            masked ? weights * static_cast<double>(masks_of_prototype(module)) : 0};
  }
  // k multiplies an integer last, so that it is rounded once.
  const double weight_bits = kValueBits * weights * modules;
  const double kept_bits =
      module.mask == MaskKind::none ? weight_bits : module.sparsity_ratio * weight_bits;
  return {kept_bits + kValueBits * biases * modules, 0};
}

double bls_bits(const ModuleStorage& module) { return bls_parts(module).total(); }

std::string bls_formula(const ModuleStorage& module) {
  require_storage(module);
  const bool masked = module.mask != MaskKind::none;
  const bool wide = attention_width(module) != module.d_model;
  SizeFormula weights;
  for (const SizeFormula& matrix : module.formula->weights) {
    weights.add(wide ? matrix : matrix.renamed("w", "d"));
  }
  SizeFormula values = masked && !module.share ? weights.times("k") : weights;
  values.add(module.formula->biases);
  std::string formula = "32·" + values.text_as_factor();
  if (module.formula->per_model) return formula;
  if (!module.share) return formula + "·L";
  if (!masked) return formula;
  return formula +
         fmt::format(" + {}·{}", weights.text_as_factor(), module.tasks > 1 ? "(L + T)" : "L");
}

std::int64_t stored_bits(const ModuleStorage& module) {
  const ModuleSize size = module_size(module);
  const bool masked = module.mask != MaskKind::none;
  if (module.share) {
    return kValueBits * size.total() + (masked ? size.weights * masks_of_prototype(module) : 0);
  }
  std::int64_t kept = size.weights;
  if (masked) {
    kept = 0;
    const SizeValues values = values_of(module);
    for (const SizeFormula& matrix : module.formula->weights) {
      const std::int64_t elements = matrix.value(values);
      kept += elements - zeros_in_mask(module.sparsity_ratio, elements);
    }
  }
  return kValueBits * (kept + size.biases) * modules_of(module);
}

std::int64_t trained_parameters(const ModuleStorage& module) {
  const ModuleSize size = module_size(module);
  const bool scores = module.mask == MaskKind::learned;
  return size.total() * modules_of(module) +
         (scores ? size.weights * masks_of_prototype(module) : 0);
}

double bls_percent(double bits, std::int64_t backbone_parameters, std::int64_t tasks) {
  require_positive("backbone_parameters", backbone_parameters);
  require_positive("tasks", tasks);
  return 100.0 * bits / static_cast<double>(kValueBits) / static_cast<double>(backbone_parameters) /
         static_cast<double>(tasks);
}

double parameters_percent(std::int64_t parameters, std::int64_t backbone_parameters,
                          std::int64_t tasks) {
  return bls_percent(static_cast<double>(kValueBits * parameters), backbone_parameters, tasks);
}

}  // namespace petlab::metrics
