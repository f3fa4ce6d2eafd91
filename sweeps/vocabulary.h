#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "sweeps/catalog.h"
#include "sweeps/fields.h"
#include "sweeps/worker_catalog.h"

namespace petlab::sweeps::internal {

std::span<const Field> builtin_fields();
std::span<const ModuleRow> builtin_modules();

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
