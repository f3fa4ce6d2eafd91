#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sweeps/catalog.h"
#include "sweeps/fields.h"

namespace petlab::sweeps {

/// A field that a worker declares.
struct DeclaredField {
  std::string name;    ///< dotted: "module.targets"
  std::string column;  ///< "module_targets"
  FieldType type = FieldType::text;
  std::string help;
  std::string wanted;    ///< type and range in words
  nlohmann::json usual;  ///< the default; null: the sweep must set it
  /// For text: the allowed values; empty: any.
  std::vector<std::string> values;
  /// For numbers: inclusive bounds.
  std::optional<nlohmann::json> least;
  std::optional<nlohmann::json> most;
  /// The kinds of module to which it applies; empty: all of the catalog.
  std::vector<std::string> kinds;

  /// True if the value has the field's type.
  bool has_type(const nlohmann::json& value) const;
  /// True if a value of the type is one of `values` and within the bounds.
  bool in_range(const nlohmann::json& value) const;
};

/// A metric that a worker declares.
struct DeclaredMetric {
  std::string name;
  bool higher_is_better = true;
};

/// What a worker can train: the object `catalog` of `WORKER --describe`
/// (docs/reference/worker-protocol.md). A sweep for the worker may use it like the built-in
/// catalog.
struct WorkerCatalog {
  /// "NAME VERSION", as in TrialConfig::catalog.
  std::string id;
  std::string name;
  std::int64_t version = 1;
  /// The model types of the backbones; empty: trials have no backbone; absent: any folder with
  /// config.json and weights.
  std::optional<std::vector<std::string>> backbones;
  /// Patterns of the backbone's files that determine a trial's numbers; empty: its configuration,
  /// weights and tokenizer.
  std::vector<std::string> backbone_files;
  /// Built-in fields outside the group `module` that apply.
  std::vector<std::string> uses;
  /// Defaults of built-in fields that differ from TrialConfig's.
  std::vector<KindDefault> defaults;
  std::vector<DeclaredField> fields;
  /// Empty: the built-in kinds.
  std::vector<DeclaredKind> kinds;
  std::vector<DeclaredMetric> metrics;
  /// Tasks whose data the worker knows; they have no files.
  std::vector<TaskDeclaration> tasks;
  /// `{"catalog":…}` with sorted keys, which parse_worker_catalog reads.
  std::string text;
};

/// The first characters of WorkerCatalog::text, which no sweep file begins with.
inline constexpr std::string_view kCatalogStart = R"({"catalog":)";

/// Reads the object `catalog` of a worker's description. `worker` is the catalog's name if it has
/// none. Throws std::invalid_argument naming the key, what was found and what was expected.
/// The kinds keep their order.
WorkerCatalog parse_worker_catalog(const nlohmann::ordered_json& catalog,
                                   const std::string& worker);
/// Reads WorkerCatalog::text. Throws std::invalid_argument.
WorkerCatalog parse_worker_catalog(std::string_view text);

/// Adds the catalog to the tables of fields() and modules(), and its metrics to the known ones.
/// Spans and rows from before stay valid. Does nothing if this text is known. Throws
/// std::invalid_argument if the catalog contradicts one that is known: another type or, in the same
/// version, another default of a field.
void learn(const WorkerCatalog& catalog);

/// A learned catalog by its id, or nullptr.
const WorkerCatalog* find_catalog(std::string_view id);

/// True if a trial of the catalog (empty: the built-in one) can have the field.
bool is_field_of(const Field& field, std::string_view catalog);

}  // namespace petlab::sweeps
