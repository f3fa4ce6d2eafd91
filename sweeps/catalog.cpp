#include "sweeps/catalog.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <vector>

#include "base/nearest_word.h"
#include "sweeps/fields.h"

namespace petlab::sweeps {

bool ModuleRow::has_field(std::string_view name) const {
  return std::find(fields.begin(), fields.end(), name) != fields.end();
}

nlohmann::json KindDefault::json() const {
  return std::visit([](auto number) { return nlohmann::json(number); }, value);
}

std::span<const ModuleRow> modules() {
  static const std::vector<ModuleRow> rows = {
      {"adapter",
       "Pfeiffer adapter after the feed-forward sub-layer",
       {"module.share", "module.mask", "module.sparsity_ratio", "module.bottleneck",
        "module.combine"},
       "module.bottleneck",
       metrics::ModuleFamily::adapter,
       {}},
      {"lora",
       "LoRA on the query and value projections",
       {"module.share", "module.mask", "module.sparsity_ratio", "module.rank", "module.alpha",
        "module.combine", "module.cross_attention"},
       "module.rank",
       metrics::ModuleFamily::lora,
       {{"training.mask_learning_rate", 3e-2}}},
      {"prefix",
       "prefix of keys and values, reparametrised by an MLP while training",
       {"module.share", "module.mask", "module.sparsity_ratio", "module.prefix_length",
        "module.prefix_hidden", "module.combine"},
       "module.prefix_length",
       metrics::ModuleFamily::prefix,
       {{"training.mask_learning_rate", 1e-4}}},
      {"full_finetuning", "every weight of the backbone", {}, "", std::nullopt, {}},
      {"head_only",
       "the classification head on the frozen backbone",
       {},
       "",
       std::nullopt,
       {},
       ModuleBackbones::encoder},
      {"hyperformer++",
       "adapters and their norms, made by a hypernetwork from embeddings of task, layer and "
       "position",
       {"module.bottleneck", "module.hyper_embedding", "module.hyper_hidden",
        "module.hyper_projected"},
       "module.bottleneck",
       metrics::ModuleFamily::hypernetwork,
       {{"module.bottleneck", std::int64_t{24}}},
       ModuleBackbones::text_to_text},
  };
  return rows;
}

const ModuleRow* find_module(std::string_view kind) {
  for (const ModuleRow& row : modules()) {
    if (row.kind == kind) return &row;
  }
  return nullptr;
}

const TaskDeclaration* find_task(std::string_view name) {
  for (const TaskDeclaration& task : tasks()) {
    if (task.name == name) return &task;
  }
  return nullptr;
}

TrialConfig default_config(std::string_view kind) {
  const ModuleRow* const row = find_module(kind);
  if (row == nullptr) {
    throw std::invalid_argument(
        fmt::format("module.kind is '{}', must be {}", kind, find_field("module.kind")->wanted));
  }
  TrialConfig config;
  config.module.kind = kind;
  for (const KindDefault& preset : row->defaults) {
    if (!find_field(preset.field)->set(config, preset.json())) {
      throw std::logic_error(fmt::format("{}: a default of another type", preset.field));
    }
  }
  return config;
}

std::string nearest_word(std::string_view word, std::span<const std::string> candidates) {
  const std::vector<std::string_view> known(candidates.begin(), candidates.end());
  return std::string(base::nearest_word(word, known));
}

std::string with_nearest(std::string_view wanted, std::string_view word,
                         std::span<const std::string> known) {
  const std::string near = nearest_word(word, known);
  return near.empty() ? std::string(wanted) : fmt::format("{} (nearest: {})", wanted, near);
}

}  // namespace petlab::sweeps
