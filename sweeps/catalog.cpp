#include "sweeps/catalog.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <vector>

#include "base/nearest_word.h"
#include "sweeps/fields.h"
#include "sweeps/vocabulary.h"

namespace petlab::sweeps {

bool ModuleRow::has_field(std::string_view name) const {
  return std::find(fields.begin(), fields.end(), name) != fields.end();
}

std::string_view ModuleRow::size_field() const {
  return declared->sizes.empty() ? std::string_view() : declared->sizes.front().field;
}

const metrics::StorageFormula* ModuleRow::formula() const {
  return declared->storage == StorageRule::formula ? &declared->formula : nullptr;
}

std::span<const ModuleRow> modules() { return internal::vocabulary().modules; }

const ModuleRow* find_module(std::string_view kind, std::string_view catalog) {
  for (const ModuleRow& row : modules()) {
    if (row.kind == kind && row.catalog == catalog) return &row;
  }
  return nullptr;
}

const ModuleRow* module_of(const TrialConfig& config) {
  return find_module(config.module.kind, config.catalog);
}

std::vector<std::string> kinds_of(std::string_view catalog) {
  std::vector<std::string> kinds;
  for (const ModuleRow& row : modules()) {
    if (row.catalog == catalog) kinds.emplace_back(row.kind);
  }
  return kinds;
}

const TaskDeclaration* find_task(std::string_view name) {
  for (const TaskDeclaration& task : tasks()) {
    if (task.name == name) return &task;
  }
  return nullptr;
}

std::string kinds_text(std::string_view catalog) {
  return internal::listed_with_or(kinds_of(catalog));
}

std::string internal::listed_with_or(std::vector<std::string> words) {
  if (words.size() < 2) return fmt::format("{}", fmt::join(words, ""));
  const std::string last = std::move(words.back());
  words.pop_back();
  return fmt::format("{} or {}", fmt::join(words, ", "), last);
}

TrialConfig default_config(std::string_view kind, std::string_view catalog) {
  const ModuleRow* const row = find_module(kind, catalog);
  if (row == nullptr) {
    throw std::invalid_argument(
        fmt::format("module.kind is '{}', must be {}", kind, kinds_text(catalog)));
  }
  TrialConfig config;
  config.catalog = catalog;
  config.module.kind = kind;
  for (const KindDefault& preset : row->defaults) {
    if (!find_field(preset.field)->set(config, preset.value)) {
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
