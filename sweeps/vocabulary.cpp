#include "sweeps/vocabulary.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

#include "base/shown.h"
#include "metrics/metric_table.h"

namespace petlab::sweeps {
namespace {

using nlohmann::json;

Field field_of(const DeclaredField& declared) {
  Field field;
  field.name = declared.name;
  field.column = declared.column;
  field.type = declared.type;
  field.use = FieldUse::of_kind;
  field.help = declared.help;
  field.wanted = declared.wanted;
  field.declared = &declared;
  field.get = [&declared](const TrialConfig& config) {
    const auto found = config.declared.find(declared.name);
    return found == config.declared.end() ? json() : json::parse(found->second);
  };
  field.set = [&declared](TrialConfig& config, const json& value) {
    if (value.is_null()) {
      config.declared.erase(declared.name);
      return true;
    }
    if (!declared.has_type(value)) return false;
    // A whole number for a field of other numbers is stored as they are: 1 and 1.0 are equal.
    config.declared[declared.name] =
        declared.type == FieldType::number ? json(value.get<double>()).dump() : value.dump();
    return true;
  };
  field.in_range = [&declared](const TrialConfig& config) {
    const auto found = config.declared.find(declared.name);
    return found != config.declared.end() && declared.in_range(json::parse(found->second));
  };
  return field;
}

ModuleRow row_of(const DeclaredKind& declared) {
  ModuleRow row;
  row.kind = declared.kind;
  row.help = declared.help;
  row.fields.assign(declared.uses.begin(), declared.uses.end());
  row.defaults = declared.defaults;
  row.declared = &declared;
  return row;
}

// The rows of a worker's kinds. Each lists all fields of its trials.
std::vector<ModuleRow> rows_of(const WorkerCatalog& catalog) {
  std::vector<ModuleRow> rows;
  if (catalog.kinds.empty()) {
    for (ModuleRow row : internal::builtin_modules()) rows.push_back(std::move(row));
  }
  for (const DeclaredKind& declared : catalog.kinds) rows.push_back(row_of(declared));
  for (ModuleRow& row : rows) {
    row.catalog = catalog.id;
    row.fields.insert(row.fields.end(), {"seed", "module.kind"});
    if (!catalog.backbones || !catalog.backbones->empty()) row.fields.emplace_back("backbone");
    row.fields.insert(row.fields.end(), catalog.uses.begin(), catalog.uses.end());
    row.defaults.insert(row.defaults.begin(), catalog.defaults.begin(), catalog.defaults.end());
    for (const DeclaredField& field : catalog.fields) {
      const bool applies = field.kinds.empty() || std::find(field.kinds.begin(), field.kinds.end(),
                                                            row.kind) != field.kinds.end();
      if (!applies) continue;
      row.fields.push_back(field.name);
      if (!field.usual.is_null()) row.defaults.push_back({field.name, field.usual});
    }
  }
  return rows;
}

const nlohmann::ordered_json& builtin_document() {
  static const auto document =
      nlohmann::ordered_json::parse(internal::catalog_files().front().content);
  return document;
}

std::mutex learning;
std::atomic<const internal::Vocabulary*> current{nullptr};

internal::Vocabulary builtin_vocabulary() {
  const auto fields = internal::builtin_fields();
  const auto rows = internal::builtin_modules();
  return {{fields.begin(), fields.end()}, {rows.begin(), rows.end()}, {}};
}

void check_agreement(const WorkerCatalog& known, const WorkerCatalog& added) {
  for (const DeclaredField& field : added.fields) {
    for (const DeclaredField& other : known.fields) {
      if (other.name == field.name && other.type != field.type) {
        throw std::invalid_argument(fmt::format(
            "the catalogs {} and {} declare {} with different types; rename one of the fields",
            base::in_quotes(known.id), base::in_quotes(added.id), field.name));
      }
      if (known.id == added.id && other.name == field.name && other.usual != field.usual) {
        throw std::invalid_argument(fmt::format(
            "catalog {}: the default of {} is {}, but trials of this version were planned with "
            "{}; raise the catalog's version",
            base::in_quotes(added.id), field.name, base::shown(field.usual),
            base::shown(other.usual)));
      }
      if (other.name != field.name && other.column == field.column) {
        throw std::invalid_argument(
            fmt::format("the fields {} and {} would have the same column {}; rename one of them",
                        other.name, field.name, field.column));
      }
    }
  }
}

}  // namespace

void learn(const WorkerCatalog& added) {
  const std::lock_guard lock(learning);
  const internal::Vocabulary& known = internal::vocabulary();
  for (const WorkerCatalog* const other : known.catalogs) {
    if (other->text == added.text) return;
  }
  for (const WorkerCatalog* const other : known.catalogs) check_agreement(*other, added);
  for (const DeclaredMetric& metric : added.metrics) {
    metrics::declare_direction(metric.name, metric.higher_is_better);
  }
  // Never freed, because rows and spans from before point into them.
  static auto& kept = *new std::deque<WorkerCatalog>;
  static auto& states = *new std::vector<std::unique_ptr<const internal::Vocabulary>>;
  const WorkerCatalog& catalog = kept.emplace_back(added);
  auto next = std::make_unique<internal::Vocabulary>(known);
  for (const DeclaredField& field : catalog.fields) {
    const auto same = std::find_if(next->fields.begin(), next->fields.end(),
                                   [&](const Field& row) { return row.name == field.name; });
    if (same == next->fields.end()) {
      next->fields.push_back(field_of(field));
    } else {
      *same = field_of(field);
    }
  }
  std::erase_if(next->modules, [&](const ModuleRow& row) { return row.catalog == catalog.id; });
  for (ModuleRow& row : rows_of(catalog)) next->modules.push_back(std::move(row));
  next->catalogs.push_back(&catalog);
  current = states.emplace_back(std::move(next)).get();
}

const WorkerCatalog* find_catalog(std::string_view id) {
  const auto& catalogs = internal::vocabulary().catalogs;
  const auto found = std::find_if(catalogs.rbegin(), catalogs.rend(),
                                  [&](const WorkerCatalog* row) { return row->id == id; });
  return found == catalogs.rend() ? nullptr : *found;
}

bool is_field_of(const Field& field, std::string_view catalog) {
  if (catalog.empty()) return field.declared == nullptr;
  const auto rows = modules();
  return std::any_of(rows.begin(), rows.end(), [&](const ModuleRow& row) {
    return row.catalog == catalog && row.has_field(field.name);
  });
}

std::string_view default_kind() {
  static const std::string kind = builtin_document().at("kinds").begin().key();
  return kind;
}

std::string_view internal::builtin_kinds_text() {
  static const std::string text = [] {
    std::vector<std::string> kinds;
    for (const auto& kind : builtin_document().at("kinds").items()) kinds.push_back(kind.key());
    return listed_with_or(std::move(kinds));
  }();
  return text;
}

std::span<const ModuleRow> internal::builtin_modules() {
  static const WorkerCatalog catalog = internal::parse_builtin_catalog(builtin_document());
  static const std::vector<ModuleRow> rows = [] {
    std::vector<ModuleRow> all;
    for (const DeclaredKind& declared : catalog.kinds) all.push_back(row_of(declared));
    return all;
  }();
  return rows;
}

const internal::Vocabulary& internal::vocabulary() {
  static const Vocabulary builtin = builtin_vocabulary();
  const Vocabulary* const now = current;
  return now == nullptr ? builtin : *now;
}

}  // namespace petlab::sweeps
