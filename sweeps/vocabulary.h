#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string_view>
#include <vector>

#include "sweeps/catalog.h"
#include "sweeps/fields.h"
#include "sweeps/worker_catalog.h"

namespace petlab::sweeps::internal {

std::span<const Field> builtin_fields();
std::span<const ModuleRow> builtin_modules();
/// The names of the built-in kinds, listed_with_or().
std::string_view builtin_kinds_text();

/// "adapter, lora or prefix".
std::string listed_with_or(std::vector<std::string> words);

/// A file of the program: trainer/modules/catalog.json.
struct CatalogFile {
  std::string_view name;
  std::string_view content;
};
std::span<const CatalogFile> catalog_files();
/// parse_worker_catalog for the program's own catalog, which also says what petlab needs to know of
/// its own trainer: memory and file formats.
WorkerCatalog parse_builtin_catalog(const nlohmann::ordered_json& catalog);

/// The built-in rows, followed by those of the learned catalogs.
struct Vocabulary {
  std::vector<Field> fields;
  std::vector<ModuleRow> modules;
  std::vector<const WorkerCatalog*> catalogs;
};

/// The current state. A state never changes and is never freed.
const Vocabulary& vocabulary();

}  // namespace petlab::sweeps::internal

namespace petlab::sweeps {

/// A value derived from the tables, computed once for each state of them.
template <class T>
class OfVocabulary {
 public:
  explicit OfVocabulary(std::function<T()> compute) : compute_(std::move(compute)) {}

  const T& get() {
    const internal::Vocabulary* const now = &internal::vocabulary();
    const std::lock_guard lock(mutex_);
    std::unique_ptr<T>& value = values_[now];
    if (value == nullptr) value = std::make_unique<T>(compute_());
    return *value;
  }

 private:
  std::function<T()> compute_;
  std::mutex mutex_;
  std::map<const internal::Vocabulary*, std::unique_ptr<T>> values_;
};

}  // namespace petlab::sweeps
