#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sweeps/trial_config.h"

namespace petlab::sweeps {

/// What kind of value a field has.
enum class FieldType { text, integer, number, boolean };
/// Its type in the database: TEXT, INTEGER, REAL; switches are INTEGER, 0 and 1.
std::string_view sql_type(FieldType type);

/// When a field means something for a trial.
enum class FieldUse {
  always,
  of_kind,          ///< where the row of the module's kind lists it
  masked,           ///< likewise, and the mask is not none
  learned_mask,     ///< where the module has masks, and they are learned
  task_masks,       ///< where layers and tasks have masks: several tasks, shared, not none
  no_steps,         ///< where training.steps does not say how long
  no_warmup_steps,  ///< where training.warmup_steps does not say how long
  t5,               ///< with a T5; which backbone it is, a configuration alone does not know
  beams,            ///< likewise, and several beams
};

/// A row of the table of TrialConfig's fields, `task(s)` and `user` apart. Reading, writing,
/// checking, hashing, the columns of the database, what queries call a field, help and docs all
/// come from its row.
struct Field {
  std::string_view name;    ///< dotted, as in sweep files: "training.learning_rate"
  std::string_view column;  ///< in the database and in queries: "training_learning_rate"
  /// Place among the columns of the database, from 1: a new field takes the next number, so that
  /// the columns of databases that there are keep theirs.
  int place;
  FieldType type;
  FieldUse use;
  std::string_view help;    ///< one line for people
  std::string_view wanted;  ///< type and range in words: "a number > 0"
  /// The value as JSON (integer, number, boolean or string).
  nlohmann::json (*get)(const TrialConfig&);
  /// Takes a value of the right type and returns true, or leaves the configuration alone.
  bool (*set)(TrialConfig&, const nlohmann::json&);
  /// Whether the value, on its own, is in range.
  bool (*in_range)(const TrialConfig&);
  /// Whether it decides a trial's numbers, so that the identity hashes it.
  bool hashed = true;
  /// False for fields that came later: to_json leaves them out where they have their default, which
  /// is what trials of before did, and which therefore never changes.
  bool written_at_default = true;
};

/// All fields, in the order in which to_json writes them.
std::span<const Field> fields();
/// The row of a dotted name, or nullptr.
const Field* find_field(std::string_view name);
/// Whether fields lie in a group of that name: "training".
bool is_group_of_fields(std::string_view name);
/// Whether the field means something for the configuration's kind of module and its switches. An
/// unknown kind has no fields of its own.
bool is_active(const Field& field, const TrialConfig& config);
/// Whether to_json writes it: active, and with another value than the default where the field came
/// later.
bool is_written(const Field& field, const TrialConfig& config);
/// The value of a field that to_json left out of a configuration with a module of that kind: its
/// default, where it came later and means something for the kind. Nothing where the field means
/// nothing, or only with a T5: which backbone it is, a configuration alone does not know.
std::optional<nlohmann::json> value_where_left_out(const Field& field,
                                                   std::string_view module_kind);
/// What is_active says, in words: "always", "lora", "adapter, lora, prefix with a mask".
std::string use_text(const Field& field);
/// The default as a sweep file spells it, and behind it those of kinds of module that have another:
/// "0.003; lora 0.03; prefix 0.0001". Empty text where there is none (backbone).
std::string default_text(const Field& field);

/// The field, `task`, `user` or `priority` that a word may have meant, or nothing: a bare
/// `learning_rate` is training.learning_rate.
std::string nearest_field(const std::string& word);

}  // namespace petlab::sweeps
