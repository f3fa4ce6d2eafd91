#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sweeps/trial_config.h"

namespace petlab::sweeps {

/// The type of a field's value.
enum class FieldType { text, integer, number, boolean };
/// The database type: TEXT, INTEGER or REAL. Switches are INTEGER, 0 and 1.
std::string_view sql_type(FieldType type);

/// The condition under which a field applies to a trial.
enum class FieldUse {
  always,
  of_kind,          ///< if the row of the module's kind lists it
  masked,           ///< likewise, and the mask is not none
  learned_mask,     ///< if the module has learned masks
  task_masks,       ///< if both layers and tasks have masks: several tasks, shared, mask not none
  no_steps,         ///< if training.steps is 0
  no_warmup_steps,  ///< if training.warmup_steps is 0
  t5,               ///< for T5 backbones, which a configuration alone cannot identify
  beams,            ///< likewise, with several beams
};

struct DeclaredField;  // sweeps/worker_catalog.h

/// A row of the table of TrialConfig's fields, without `task(s)` and `user`. Reading, writing,
/// validation, hashing, database columns, names in queries, help and docs are all derived from it.
struct Field {
  std::string_view name;    ///< dotted, as in sweep files: "training.learning_rate"
  std::string_view column;  ///< name in the database and in queries: "training_learning_rate"
  /// Position among the database columns, from 1. A new field takes the next number, so that the
  /// columns of existing databases keep theirs.
  /// Fields that a worker declares have no column in tables (0).
  int place = 0;
  FieldType type = FieldType::text;
  FieldUse use = FieldUse::always;
  std::string_view help;    ///< one line for people
  std::string_view wanted;  ///< type and range in words: "a number > 0"
  /// The value as JSON (integer, number, boolean or string); null: a declared field without one.
  std::function<nlohmann::json(const TrialConfig&)> get;
  /// Stores a value and returns true, or returns false for a value of the wrong type without
  /// changes. Null removes the value of a declared field.
  std::function<bool(TrialConfig&, const nlohmann::json&)> set;
  /// True if the value is in range, independent of other fields.
  std::function<bool(const TrialConfig&)> in_range;
  /// True if the field affects a trial's numbers and is therefore hashed into its id.
  bool hashed = true;
  /// False for fields added later: to_json omits them at their default. The default is what earlier
  /// trials did, so it must never change.
  bool written_at_default = true;
  /// Set for a field that a worker declares.
  const DeclaredField* declared = nullptr;
};

/// All fields, in the order in which to_json writes them: the built-in ones, then those that
/// workers declare.
std::span<const Field> fields();
/// The row with that dotted name, or nullptr.
const Field* find_field(std::string_view name);
/// True if there is a group of fields with that name, such as "training".
bool is_group_of_fields(std::string_view name);
/// True if the field applies to the configuration's kind of module and its switches. An unknown
/// kind has no module fields.
bool is_active(const Field& field, const TrialConfig& config);
/// True if to_json writes the field: it is active and, if added later, differs from its default.
bool is_written(const Field& field, const TrialConfig& config);
/// The value of a field that to_json omitted for a module of that kind: the default of a later
/// field that applies to the kind. Absent if the field does not apply, or only with a T5, which a
/// configuration alone cannot identify.
std::optional<nlohmann::json> value_where_left_out(const Field& field,
                                                   std::string_view module_kind);
/// The condition of is_active in words, for the built-in catalog or the one that declares the
/// field: "always", "lora", "adapter, lora, prefix with a mask".
std::string use_text(const Field& field);
/// The default as in sweep files, followed by different defaults of kinds: "0.003; lora 0.03;
/// prefix 0.0001". Empty if there is none (backbone).
std::string default_text(const Field& field);

/// The field, `task`, `user` or `priority` that a word may mean; empty if none is similar. A bare
/// `learning_rate` means training.learning_rate.
/// Considers the fields of a catalog (empty: the built-in one).
std::string nearest_field(const std::string& word, std::string_view catalog = {});

}  // namespace petlab::sweeps
