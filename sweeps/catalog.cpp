#include "sweeps/catalog.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <stdexcept>

#include "sweeps/fields.h"

namespace petlab::sweeps {
namespace {

// Changes, insertions, deletions and swaps of neighbours.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1);
  std::vector<std::size_t> last(b.size() + 1);
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::swap(before, last);
    std::swap(last, row);
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      row[j + 1] = std::min({last[j] + (a[i] == b[j] ? 0 : 1), last[j + 1] + 1, row[j] + 1});
      if (i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j]) {
        row[j + 1] = std::min(row[j + 1], before[j - 1] + 1);
      }
    }
  }
  return row.back();
}

}  // namespace

std::span<const ModuleRow> modules() {
  static const std::vector<ModuleRow> rows = {
      {"adapter",
       "Pfeiffer adapter after the feed-forward sub-layer",
       {"module.share", "module.mask", "module.sparsity_ratio", "module.bottleneck"},
       "module.bottleneck",
       metrics::ModuleFamily::adapter,
       {}},
      {"lora",
       "LoRA on the query and value projections",
       {"module.share", "module.mask", "module.sparsity_ratio", "module.rank", "module.alpha"},
       "module.rank",
       metrics::ModuleFamily::lora,
       {{"training.mask_learning_rate", 3e-2}}},
      {"prefix",
       "prefix of keys and values, reparametrised by an MLP while training",
       {"module.share", "module.mask", "module.sparsity_ratio", "module.prefix_length",
        "module.prefix_hidden"},
       "module.prefix_length",
       metrics::ModuleFamily::prefix,
       {{"training.mask_learning_rate", 1e-4}}},
      {"full_finetuning", "every weight of the backbone", {}, "", std::nullopt, {}},
      {"head_only", "the classification head on the frozen backbone", {}, "", std::nullopt, {}},
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
    find_field(preset.field)->set(config, preset.value);
  }
  return config;
}

std::string nearest_word(std::string_view word, std::span<const std::string> candidates) {
  // A word that nobody could have meant is not worth the time that long inputs would cost.
  if (word.empty() || word.size() > 100) return "";
  const std::string* best = nullptr;
  std::size_t best_distance = std::max<std::size_t>(1, word.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    const std::size_t distance = edit_distance(word, candidate);
    if (distance < best_distance) {
      best_distance = distance;
      best = &candidate;
    }
  }
  return best == nullptr ? "" : *best;
}

}  // namespace petlab::sweeps
