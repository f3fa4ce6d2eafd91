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

/// A row of the table of TrialConfig's fields, `task(s)` and `user` apart. Reading, writing,
/// checking, hashing and the documentation of a field all come from its row.
struct Field {
  std::string_view name;    ///< dotted: "training.learning_rate"
  std::string_view wanted;  ///< type and range in words: "a number > 0"
  /// The value as JSON (integer, number, boolean or string).
  nlohmann::json (*get)(const TrialConfig&);
  /// Takes a value of the right type and returns true, or leaves the configuration alone.
  bool (*set)(TrialConfig&, const nlohmann::json&);
  /// Whether the value, on its own, is in range.
  bool (*in_range)(const TrialConfig&);
  /// Whether it decides a trial's numbers, so that the identity hashes it.
  bool hashed = true;
};

/// All fields, in the order in which to_json writes them.
std::span<const Field> fields();
/// The row of a dotted name, or nullptr.
const Field* find_field(std::string_view name);
/// Whether the field means something for the configuration's kind of module and its switches. An
/// unknown kind has no fields of its own.
bool is_active(const Field& field, const TrialConfig& config);

/// Something wrong with a configuration, in parts.
struct FieldProblem {
  std::string field;
  std::string found;
  std::string wanted;
};

/// The field, `task`, `user` or `priority` that a word may have meant, or nothing: a bare
/// `learning_rate` is training.learning_rate.
std::string nearest_field(const std::string& word);

/// What validate() finds, in parts.
std::vector<FieldProblem> field_problems(const TrialConfig& config,
                                         std::span<const TaskDeclaration> declared);

}  // namespace petlab::sweeps
