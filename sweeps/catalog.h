#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "metrics/storage.h"
#include "sweeps/task.h"
#include "sweeps/trial_config.h"

namespace petlab::sweeps {

/// A field whose default depends on the module's kind.
struct KindDefault {
  std::string_view field;                    // dotted name
  std::variant<double, std::int64_t> value;  // of the field's type
  /// The value as the field takes it.
  nlohmann::json json() const;
};

/// Which backbones a kind of module is for: encoders have heads, text-to-text ones a decoder.
enum class ModuleBackbones { any, encoder, text_to_text };

/// A row of the table of modules. trainer/modules/ has a table of the same kinds; a test holds the
/// two equal.
struct ModuleRow {
  std::string_view kind;
  std::string_view help;
  /// The dotted fields of ModuleConfig, `module.kind` apart, that mean something for this kind.
  /// (`module.sparsity_ratio` only where the mask is not none.)
  std::vector<std::string_view> fields;
  /// The field that is the module's size, the one that match_storage_of solves; empty: none.
  std::string_view size_field;
  /// The storage formula (metrics/storage.h); absent where nothing is stored but backbone and head.
  std::optional<metrics::ModuleFamily> family;
  /// Defaults that differ from TrialConfig's initialisers.
  std::vector<KindDefault> defaults;
  ModuleBackbones backbones = ModuleBackbones::any;

  /// Whether the field of that dotted name is one of `fields`.
  bool has_field(std::string_view name) const;
};

/// adapter, lora, prefix, full_finetuning, head_only, hyperformer++.
std::span<const ModuleRow> modules();
/// The row of a kind, or nullptr.
const ModuleRow* find_module(std::string_view kind);

/// The built-in tasks: GLUE's eight, polarity and valence of the four snippet sets, and the two of
/// texts (WMT16 Romanian to English, XSum).
std::span<const TaskDeclaration> tasks();
/// The built-in task of that name, or nullptr.
const TaskDeclaration* find_task(std::string_view name);

/// The default configuration of a kind: TrialConfig's initialisers and the row's own defaults.
/// Throws std::invalid_argument for an unknown kind.
TrialConfig default_config(std::string_view kind);

/// base::nearest_word for candidates that are strings.
std::string nearest_word(std::string_view word, std::span<const std::string> candidates);

/// `a section (nearest: base)`: what was wanted in place of `word`, with the known word that it
/// resembles, if there is one.
std::string with_nearest(std::string_view wanted, std::string_view word,
                         std::span<const std::string> known);

}  // namespace petlab::sweeps
