#include "metrics/storage.h"

#include <fmt/format.h>

#include <stdexcept>
#include <vector>

namespace petlab::metrics {
namespace {

void require_positive(const char* field, std::int64_t value) {
  if (value <= 0) throw std::invalid_argument(fmt::format("{} is {}, must be > 0", field, value));
}

void require_storage(const ModuleStorage& module) {
  require_positive("d_model", module.d_model);
  require_positive("layers", module.layers);
  require_positive("the module's size", module.size);
  require_positive("tasks", module.tasks);
  if (module.family == ModuleFamily::hypernetwork) {
    require_positive("the hypernetwork's embedding", module.hypernetwork.embedding);
    require_positive("the hypernetwork's hidden size", module.hypernetwork.hidden);
    require_positive("the hypernetwork's projected size", module.hypernetwork.projected);
    if (module.share || module.mask != MaskKind::none) {
      throw std::invalid_argument(
          fmt::format("a hypernetwork is neither shared nor masked: share is {}, mask is {}",
                      module.share, to_string(module.mask)));
    }
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

struct Matrices {
  std::int64_t count = 0;
  std::int64_t elements = 0;
};

// Number of values in both stacks' generators and the tasks' embeddings.
std::int64_t hypernetwork_numbers(const ModuleStorage& module) {
  const auto& [embedding, hidden, projected] = module.hypernetwork;
  const auto linear = [](std::int64_t in, std::int64_t out) { return in * out + out; };
  // Down and up projections with biases, and the norm's weight and bias, all generated from the
  // projection.
  const std::int64_t generated =
      2 * module.size * module.d_model + module.size + 3 * module.d_model;
  const std::int64_t generator = linear(3 * embedding, hidden) + linear(hidden, projected) +
                                 2 * projected + linear(projected, generated);
  // Each task, each layer and two positions in each stack have an embedding.
  return (module.tasks + module.layers + 4) * embedding + 2 * generator;
}

// Weight matrices of one layer's module with separate masks, all of the same size.
std::vector<Matrices> masked_matrices(const ModuleStorage& module) {
  switch (module.family) {
    case ModuleFamily::adapter:
      return {{2, module.size * module.d_model}};
    case ModuleFamily::lora:
      return {{2, module.size * module.d_model}, {2, module.size * attention_width(module)}};
    case ModuleFamily::prefix:
      return {{1, 2 * module.size * attention_width(module)}};
    case ModuleFamily::hypernetwork:
      return {{1, hypernetwork_numbers(module)}};
  }
  return {};
}

// Number of modules of module_size().
std::int64_t modules_of(const ModuleStorage& module) {
  const bool one = module.share || module.family == ModuleFamily::hypernetwork;
  return one ? 1 : module.layers;
}

struct FormulaWords {
  std::string_view weights;
  std::string_view kept_weights;
  std::string_view biases;
};

FormulaWords formula_words(const ModuleStorage& module) {
  const bool wide = attention_width(module) != module.d_model;
  switch (module.family) {
    case ModuleFamily::adapter:
      return {"2·bn·d", "2·k·bn·d", " + bn + d"};
    case ModuleFamily::lora:
      if (wide) return {"2·r·(d + w)", "2·k·r·(d + w)", ""};
      return {"4·r·d", "4·k·r·d", ""};
    case ModuleFamily::prefix:
      if (wide) return {"2·l·w", "2·k·l·w", ""};
      return {"2·l·d", "2·k·l·d", ""};
    case ModuleFamily::hypernetwork:
      return {"(T + L + 4)·E + 2·((3·E + 1)·H + (H + 1)·P + 2·P + (P + 1)·(2·bn·d + bn + 3·d))", "",
              ""};
  }
  return {};
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

std::string_view to_string(ModuleFamily family) {
  switch (family) {
    case ModuleFamily::adapter:
      return "adapter";
    case ModuleFamily::lora:
      return "lora";
    case ModuleFamily::prefix:
      return "prefix";
    case ModuleFamily::hypernetwork:
      return "hyperformer++";
  }
  return "";
}

std::optional<ModuleFamily> module_family_from(std::string_view text) {
  for (const ModuleFamily family : {ModuleFamily::adapter, ModuleFamily::lora, ModuleFamily::prefix,
                                    ModuleFamily::hypernetwork}) {
    if (text == to_string(family)) return family;
  }
  return std::nullopt;
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
  std::int64_t weights = 0;
  for (const Matrices& some : masked_matrices(module)) weights += some.count * some.elements;
  const bool biased = module.family == ModuleFamily::adapter;
  return {weights, biased ? module.size + module.d_model : 0};
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
  const auto [weights, kept_weights, biases] = formula_words(module);
  const bool masked = module.mask != MaskKind::none;
  const std::string_view values = masked && !module.share ? kept_weights : weights;
  if (module.family == ModuleFamily::hypernetwork) return fmt::format("32·({})", weights);
  // A single product needs no parentheses.
  std::string formula =
      biases.empty() ? fmt::format("32·{}", values) : fmt::format("32·({}{})", values, biases);
  if (!module.share) return formula + "·L";
  if (!masked) return formula;
  return formula + fmt::format(" + {}·{}", weights, module.tasks > 1 ? "(L + T)" : "L");
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
    for (const Matrices& some : masked_matrices(module)) {
      kept += some.count * (some.elements - zeros_in_mask(module.sparsity_ratio, some.elements));
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
